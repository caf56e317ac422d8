// Formatters, error bars, tooltips, zoom and downloads of the dashboard's charts.
window.keisei = (() => {
  const escape = (text) =>
    String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
  // Words in the page's language, set by the page.
  const words = {};

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

  // Series that only draw what others show: the area, the faint values.
  const isExtra = (id) => /^(low|high)-|^raw$/.test(id || "");

  // Names come from files: they are escaped, never markup.
  const tip = (unit) => (found) => {
    const points = (Array.isArray(found) ? found : [found]).filter(
      (p) => (p.seriesType === "line" || p.seriesType === "scatter") && !isExtra(p.seriesId),
    );
    if (!points.length) return "";
    const faint = (text) => ` <span class="d-faint">${text}</span>`;
    const axis = Array.isArray(found) ? points[0].axisValue : points[0].value[0];
    const rows = points.map((p) => {
      const v = p.value;
      if (p.seriesId === "checkpoints")
        return `<div>▲ ${escape(p.name)}: ${escape(words.play)}</div>`;
      const bound = p.data?.bound; // in words, of a rating beyond the scale
      if (p.seriesType === "scatter")
        return `<div><b>${escape(p.name)}</b> ` + (bound ? `${escape(bound)}</div>` :
          `${Math.round(v[0])} Elo${faint(`${Math.round(v[2])} – ${Math.round(v[3])}`)}</div>`);
      const isShare = p.value.length === 5 || (p.value.length === 2 && v[1] <= 1);
      const show = isShare ? percent : number;
      const range = v.length > 3 ? [show(v[2]), show(v[3])] : null;
      const more = range && range[0] !== range[1] ? faint(`${range[0]} – ${range[1]}`) : "";
      const games = v.length === 5 && v[4] ? faint(`${v[4]} ${escape(words.games)}`) : "";
      const value = bound ? escape(bound) : `<b>${show(v[1])}</b>${more}`;
      return `<div><span class="d-dot" style="background:${escape(p.color)}"></span> ` +
        `${escape(p.seriesName)} ${value}${games}</div>`;
    });
    const whole = Math.abs(axis) >= 100 ? Math.round(axis) : Math.round(axis * 10) / 10;
    const head = Array.isArray(found)
      ? `<div class="d-faint">${whole.toLocaleString()} ${escape(words[unit])}</div>` : "";
    return head + rows.join("");
  };
  const tips = { timestep: tip("timestep"), seconds: tip("seconds"), update: tip("update") };

  // Seconds since 1970 as a date in the page's language.
  const when = (seconds) =>
    seconds
      ? new Date(1000 * seconds).toLocaleString(document.documentElement.lang || [], {
          month: "short", day: "numeric", hour: "2-digit", minute: "2-digit",
        })
      : "-";

  // ---- zoom ----

  const chartOf = (id) => getElement(id)?.chart;
  const zoomOf = (chart) => {
    const { start = 0, end = 100 } = chart.getOption().dataZoom?.[0] ?? {};
    return [start, end];
  };
  const setZoom = (chart, start, end) => {
    chart.dispatchAction({ type: "dataZoom", start: Math.max(0, start), end: Math.min(100, end) });
    chart.getDom().classList.toggle("d-zoomed", start > 0 || end < 100);
  };
  // Keeps the middle: a factor below 1 shows less of the axis.
  const zoom = (id, factor) => {
    const chart = chartOf(id);
    if (!chart) return;
    const [start, end] = zoomOf(chart);
    const reach = Math.max(0.05, ((end - start) * factor) / 2);
    const middle = Math.min(100 - reach, Math.max(reach, (start + end) / 2));
    setZoom(chart, reach >= 50 ? 0 : middle - reach, reach >= 50 ? 100 : middle + reach);
  };
  const resetZoom = (id) => chartOf(id) && setZoom(chartOf(id), 0, 100);

  // ---- downloads ----

  const download = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  const fileName = (title, ending) =>
    `${title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "") || "plot"}.${ending}`;
  // The picture as a file of its own: colours are written out, the card's colour is behind it.
  const svgText = (chart) => {
    const drawn = chart.getDom().querySelector("svg");
    const style = getComputedStyle(document.body);
    const { width, height } = drawn.getBoundingClientRect();
    const copy = drawn.cloneNode(true);
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const text = new XMLSerializer().serializeToString(copy);
    const colour = style.getPropertyValue("--k-surface").trim();
    return text
      .replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim() || "#000")
      .replace(/(<svg[^>]*>)/, `$1<rect width="100%" height="100%" fill="${colour}"/>`);
  };
  const pngBlob = async (chart) => {
    const scale = 2;
    const picture = new Image();
    picture.src = URL.createObjectURL(new Blob([svgText(chart)], { type: "image/svg+xml" }));
    await picture.decode();
    const canvas = document.createElement("canvas");
    canvas.width = scale * picture.width;
    canvas.height = scale * picture.height;
    canvas.getContext("2d").drawImage(picture, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(picture.src);
    return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
  };
  const save = async (id, kind, title) => {
    const chart = chartOf(id);
    if (!chart) return;
    const blob =
      kind === "svg" ? new Blob([svgText(chart)], { type: "image/svg+xml" }) : await pngBlob(chart);
    download(blob, fileName(title, kind));
  };
  return { words, when, number, percent, errorBar, errorBarAcross, tips, zoom, resetZoom, save };
})();
