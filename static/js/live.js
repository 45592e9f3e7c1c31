// The past hour of a host as small drawings. They grow with each sample that the page polls; without this file the
// tables beside them say the same.
(function () {
  "use strict";

  const source = document.getElementById("live-history");
  if (!source || !window.uPlot) return;
  const history = JSON.parse(source.textContent);
  const HOUR = 3600;
  const HEIGHT = 120;

  const clock = (seconds, to) => new Date(seconds * 1000).toISOString().slice(11, to);
  const percent = (_, value) => (value === null || value === undefined ? "-" : Math.round(value) + " %");
  // A canvas knows no custom properties: the colours are those that the key beside it really has.
  const colour = (box, name, property) => () =>
    getComputedStyle(name ? box.parentElement.querySelector(name) : box)[property];

  function line(box, label, name, dash) {
    const stroke = colour(box, name, "stroke");
    return { label, stroke, dash, width: 1.5, spanGaps: false, points: { show: false }, value: percent };
  }

  function plot(box) {
    const lines = history.plots[box.dataset.plot];
    const ink = colour(box, "", "color");
    const grid = { stroke: () => getComputedStyle(box).borderColor, width: 1 };
    const series = [line(box, "memory", ".l-a"), line(box, "busy", ".l-b", [5, 3])].slice(0, lines.length);
    return new window.uPlot(
      {
        width: box.clientWidth,
        height: HEIGHT,
        cursor: { drag: { x: false, y: false } },
        legend: { live: true },
        scales: {
          x: { time: true, range: (_, __, last) => [last - HOUR, last] },
          y: { range: [0, 104] }, // a line at 100 is seen whole
        },
        axes: [
          { stroke: ink, grid, ticks: grid, size: 28, values: (_, marks) => marks.map((mark) => clock(mark, 16)) },
          { stroke: ink, grid, ticks: grid, size: 36, splits: () => [0, 50, 100] },
        ],
        series: [{ label: "at", value: (_, at) => (at ? clock(at, 19) : "-") }, ...series],
      },
      [history.t, ...lines],
      box,
    );
  }

  const boxes = Array.from(document.querySelectorAll("[data-plot]")).filter((box) => history.plots[box.dataset.plot]);
  const plots = new Map(boxes.map((box) => [box, plot(box)]));

  function redraw() {
    for (const [box, drawn] of plots) drawn.setData([history.t, ...history.plots[box.dataset.plot]]);
  }

  function push(at, values) {
    history.t.push(at);
    for (const [key, lines] of Object.entries(history.plots)) {
      lines.forEach((known, position) => known.push(values[key] ? values[key][position] : null));
    }
  }

  function grow() {
    const live = document.getElementById("live");
    if (!live || !live.dataset.point) return;
    const point = JSON.parse(live.dataset.point);
    const last = history.t.length ? history.t[history.t.length - 1] : 0;
    if (point.t <= last) return;
    if (last && point.t - last > history.gap) push(last + 1, {});
    push(point.t, point.values);
    while (history.t[0] < point.t - HOUR) {
      history.t.shift();
      for (const lines of Object.values(history.plots)) lines.forEach((known) => known.shift());
    }
    redraw();
  }

  document.addEventListener("htmx:afterSwap", grow);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      if (contentRect.width) plots.get(target).setSize({ width: contentRect.width, height: HEIGHT });
    }
  });
  for (const box of boxes) sizes.observe(box);
})();
