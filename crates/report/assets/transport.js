// The slider through a run, and the button that plays it.

const FRAME_MS = 260;
const PLAY = "M3 1.5v13l11-6.5z", PAUSE = "M3 2h4v12H3zM9 2h4v12H9z";

/** Calls `show` with a share of the run, 0–1; playing waits for each moment to be drawn before the next. */
function transport(steps, show) {
  const icon = svg("path", { d: PLAY });
  const picture = svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" });
  picture.append(icon);
  const button = el("button", { type: "button" }, picture);
  button.setAttribute("aria-label", "Play");
  const slider = el("input", { type: "range", min: 0, max: steps - 1, step: 1, value: Math.floor((steps - 1) / 2) });
  slider.setAttribute("aria-label", "Moment of the run");
  const output = el("output");
  const moment = () => {
    output.textContent = `moment ${Number(slider.value) + 1} of ${steps}`;
    return show(steps > 1 ? Number(slider.value) / (steps - 1) : 1);
  };
  let playing = false;
  const setPlaying = on => {
    playing = on;
    icon.setAttribute("d", on ? PAUSE : PLAY);
    button.setAttribute("aria-label", on ? "Pause" : "Play");
  };
  const play = async () => {
    if (Number(slider.value) === steps - 1) slider.value = 0;
    else slider.value = Number(slider.value) + 1;
    while (playing) {
      const began = performance.now();
      await moment();
      await new Promise(done => setTimeout(done, Math.max(0, FRAME_MS - (performance.now() - began))));
      if (!playing) return;
      if (Number(slider.value) >= steps - 1) return setPlaying(false);
      slider.value = Number(slider.value) + 1;
    }
  };
  button.addEventListener("click", () => {
    setPlaying(!playing);
    if (playing) play();
  });
  slider.addEventListener("input", () => {
    setPlaying(false);
    moment();
  });
  button.disabled = steps < 2;
  slider.disabled = steps < 2;
  moment();
  return el("div", { className: "transport" }, button, el("div", { className: "track" }, slider), output);
}
