// Formatters, error bars and tooltips of the dashboard's charts.
window.keisei = (() => {
  const escape = (text) =>
    String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);

  const number = (value) => {
    if (value == null || !isFinite(value)) return "-";
    const size = Math.abs(value);
    for (const [unit, name] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]])
      if (size >= unit) return +(value / unit).toPrecision(3) + name;
    if (size !== 0 && size < 1e-3) return value.toExponential(1);
    return String(+value.toPrecision(3));
  };
  const percent = (value) => `${+(100 * value).toFixed(1)} %`;

  // An error bar from low to high at [x, value, low, high], with caps, as one polyline.
  const bar = (ends, across) => (params, api) => {
    const [low, high] = ends(api);
    const cap = ([x, y], by) => (across ? [x, y + by] : [x + by, y]);
    const size = 3.5;
    return {
      type: "polyline",
      shape: {
        points: [cap(low, -size), cap(low, size), low, high, cap(high, -size), cap(high, size)],
      },
      style: { stroke: api.visual("color"), fill: null, lineWidth: 1.2, opacity: 0.75 },
    };
  };
  const errorBar = bar((api) => [2, 3].map((i) => api.coord([api.value(0), api.value(i)])), false);
  const errorBarAcross = bar(
    (api) => [2, 3].map((i) => api.coord([api.value(i), api.value(1)])),
    true,
  );

  // Names come from files: they are escaped, never markup.
  const tip = (unit) => (found) => {
    const points = (Array.isArray(found) ? found : [found]).filter(
      (p) => (p.seriesType === "line" || p.seriesType === "scatter") &&
        !/^(low|high|raw)$/.test(p.seriesId),
    );
    if (!points.length) return "";
    const axis = Array.isArray(found) ? points[0].axisValue : points[0].value[0];
    const rows = points.map((p) => {
      const v = p.value;
      if (p.seriesName === "checkpoints") return `<div>▲ ${escape(p.name)}: click to play</div>`;
      if (p.seriesType === "scatter")
        return `<div><b>${escape(p.name)}</b> ${Math.round(v[0])} Elo ` +
          `<span class="d-faint">${Math.round(v[2])} to ${Math.round(v[3])}</span></div>`;
      const isShare = p.value.length === 5 || (p.value.length === 2 && v[1] <= 1);
      const text = isShare ? percent(v[1]) : number(v[1]);
      const range = v.length > 3 ? (isShare ? [percent(v[2]), percent(v[3])] : [number(v[2]), number(v[3])]) : null;
      const more = range && range[0] !== range[1]
        ? ` <span class="d-faint">${range[0]} to ${range[1]}</span>` : "";
      const games = v.length === 5 && v[4] ? ` <span class="d-faint">${v[4]} games</span>` : "";
      return `<div><span class="d-dot" style="background:${escape(p.color)}"></span> ` +
        `${escape(p.seriesName)} <b>${text}</b>${more}${games}</div>`;
    });
    const whole = Math.abs(axis) >= 100 ? Math.round(axis) : Math.round(axis * 10) / 10;
    const head = Array.isArray(found)
      ? `<div class="d-faint">${whole.toLocaleString("en")} ${unit}</div>` : "";
    return head + rows.join("");
  };
  const tips = { timestep: tip("plies"), seconds: tip("minutes"), update: tip("updates") };

  // Seconds since 1970 as a date in the visitor's locale.
  const when = (seconds) =>
    seconds
      ? new Date(1000 * seconds).toLocaleString([], {
          month: "short", day: "numeric", hour: "2-digit", minute: "2-digit",
        })
      : "-";
  return { when, number, percent, errorBar, errorBarAcross, tips };
})();
