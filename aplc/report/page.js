// Draws the charts of the report from the data in the page; the tables beside them have the same numbers.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = [];
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const seconds = (value) =>
    value < 1e-3 ? (value * 1e6).toPrecision(3) + " us" : value < 1 ? (value * 1e3).toPrecision(3) + " ms" : value.toPrecision(3) + " s";
  const axis = (title, more) => ({
    title: { display: title !== "", text: title, color: colour("text") },
    ticks: { color: colour("muted") },
    grid: { color: colour("line") },
    ...more,
  });
  const draw = (id, make) => {
    const canvas = document.getElementById(id);
    if (canvas) charts.push(new Chart(canvas, make()));
  };
  const all = () => {
    charts.splice(0).forEach((chart) => chart.destroy());
    Chart.defaults.color = colour("text");
    Chart.defaults.animation = false;
    Chart.defaults.maintainAspectRatio = false;
    data.entries.forEach((entry, k) => {
      draw("time-" + k, () => ({
        type: "bar",
        data: {
          labels: entry.rows.map((row) => row.label),
          datasets: [{
            label: "predicted time",
            data: entry.rows.map((row) => row.seconds * 1e6),
            backgroundColor: entry.rows.map((row) => colour(row.missed ? "missed" : row.tiled ? "good" : "accent")),
          }],
        },
        options: {
          indexAxis: "y",
          scales: { x: axis("predicted time in us"), y: axis(entry.rows.length > 2 ? "source line" : "") },
          plugins: { legend: { display: false }, tooltip: { callbacks: { label: (item) => entry.rows[item.dataIndex].what } } },
        },
      }));
      draw("roofline-" + k, () => {
        const points = entry.kernels.filter((kernel) => kernel.intensity > 0 && kernel.rate > 0);
        const ridge = data.device.peak / data.device.bandwidth;
        const xs = points.map((point) => point.intensity).concat([ridge]);
        const low = Math.min(...xs) / 4, high = Math.max(...xs) * 4;
        return {
          type: "scatter",
          data: {
            datasets: [
              {
                label: "roof of " + data.device.name,
                type: "line",
                data: [low, ridge, high].map((x) => ({ x, y: Math.min(data.device.peak, x * data.device.bandwidth) / 1e9 })),
                borderColor: colour("muted"), borderWidth: 2, pointRadius: 0,
              },
              {
                label: "kernels, as predicted",
                data: points.map((point) => ({ x: point.intensity, y: point.rate / 1e9, name: point.label })),
                backgroundColor: colour("accent"), pointRadius: 6,
              },
            ],
          },
          options: {
            scales: {
              x: axis("operations for each byte of memory", { type: "logarithmic" }),
              y: axis("billion operations a second", { type: "logarithmic" }),
            },
            plugins: { tooltip: { callbacks: { label: (item) => item.raw.name || item.dataset.label } } },
          },
        };
      });
    });
    data.products.forEach((plans, k) => {
      draw("plans-" + k, () => ({
        type: "bar",
        data: {
          labels: plans.map((plan) => plan.name),
          datasets: [{
            label: "predicted time",
            data: plans.map((plan) => plan.microseconds),
            backgroundColor: plans.map((plan, n) => colour(n === 0 ? "good" : "accent")),
          }],
        },
        options: {
          indexAxis: "y",
          scales: { x: axis("predicted time in us", { type: "logarithmic" }), y: axis(plans.length > 2 ? "plan" : "") },
          plugins: { legend: { display: false } },
        },
      }));
    });
    draw("tuning", () => ({
      type: "scatter",
      data: { datasets: [{ label: "trials", data: data.tuning.map((trial, k) => ({ x: k + 1, y: trial.microseconds, name: trial.parameters })), backgroundColor: colour("accent") }] },
      options: {
        scales: { x: axis("trial"), y: axis("measured time in us", { type: "logarithmic" }) },
        plugins: { tooltip: { callbacks: { label: (item) => item.raw.name + ": " + seconds(item.raw.y * 1e-6) } } },
      },
    }));
  };
  all();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  document.documentElement.dataset.ready = charts.length;
})();
