// Fills each experiment's section from the page's data. A part without data stays hidden.

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
