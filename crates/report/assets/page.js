// Fills each experiment's section from the page's data. A part without data stays hidden. Says where
// a table is wider than the page.

const data = JSON.parse(document.getElementById("data").textContent);

for (const section of document.querySelectorAll("section[data-experiment]")) {
  const experiment = data?.experiments[Number(section.dataset.experiment)];
  if (!experiment) continue;
  const part = name => section.querySelector(`.part.${name}`);
  showSweeps(part("sweep"), experiment);
  showCurves(part("curves"), experiment);
  showPace(part("pace"), experiment);
  const markMoments = showSeries(part("series"), experiment);
  showMap(part("map"), experiment, data.palette, markMoments);
}

for (const table of document.querySelectorAll(".scroll")) {
  const hint = el("p", { className: "sideways", textContent: "The table goes on to the right: scroll it sideways." });
  table.before(hint);
  const mark = () => {
    hint.hidden = table.scrollWidth <= table.clientWidth + 1;
    table.classList.toggle("cut", table.scrollWidth - table.clientWidth - table.scrollLeft > 1);
  };
  table.addEventListener("scroll", mark, { passive: true });
  new ResizeObserver(mark).observe(table);
}
