// Returns the texts of the page that have too little contrast for WCAG 2.2 AA, each once.
(() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const seen = new Map();
  function rgba(color) {
    if (!seen.has(color)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
      const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
      seen.set(color, [r, g, b, a / 255]);
    }
    return seen.get(color);
  }
  const over = (top, below) => [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  function luminance(color) {
    const [r, g, b] = color.map((c) => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }
  function ratio(a, b) {
    const [x, y] = [luminance(a), luminance(b)].sort((m, n) => n - m);
    return (x + 0.05) / (y + 0.05);
  }
  // What is painted behind an element: its own background and those of what it is in, and in a
  // drawing the rectangle of its group.
  function behind(element) {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      layers.push(rgba(getComputedStyle(e).backgroundColor));
      const box = e instanceof SVGElement && e.querySelector(":scope > rect");
      if (box) layers.push(rgba(getComputedStyle(box).fill));
    }
    const base = matchMedia("(prefers-color-scheme: dark)").matches ? [18, 18, 18, 1] : [255, 255, 255, 1];
    return layers.reduceRight((below, top) => over(top, below), base);
  }
  const pale = new Map();
  function check(element, color, text) {
    const style = getComputedStyle(element);
    const background = behind(element);
    let opacity = 1;
    for (let e = element; e; e = e.parentElement) opacity *= getComputedStyle(e).opacity;
    const ink = rgba(color).slice();
    ink[3] *= opacity;
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    const is = ratio(over(ink, background), background);
    if (is < (large ? 3 : 4.5)) {
      const colors = color + " on " + background.slice(0, 3).map(Math.round);
      pale.set(element.tagName + element.className + colors, { Text: text.trim().slice(0, 60), Colors: colors, Ratio: is });
    }
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const text = texts.currentNode.data, element = texts.currentNode.parentElement;
    if (!text.trim() || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) || element.closest("script, style, option, :disabled")) continue;
    const style = getComputedStyle(element);
    check(element, element instanceof SVGElement ? style.fill : style.color, text);
  }
  for (const field of document.querySelectorAll("input, select, textarea")) {
    if (!field.checkVisibility() || field.disabled) continue;
    check(field, getComputedStyle(field).color, field.name);
    if (field.placeholder) check(field, getComputedStyle(field, "::placeholder").color, field.placeholder);
  }
  return [...pale.values()];
})();
