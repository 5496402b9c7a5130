// Times in the viewer's zone; values of charts; texts that are copied with one click; and what is renewed while it is looked at.
"use strict";
(function () {
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  // clock is a time of this day as 09:05, and any other with its day.
  function clock(at, seconds) {
    const parts = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
    if (seconds) parts.second = "2-digit";
    if (at.toDateString() !== new Date().toDateString()) {
      Object.assign(parts, { day: "numeric", month: "short" });
      if (at.getFullYear() !== new Date().getFullYear()) parts.year = "numeric";
    }
    return at.toLocaleString("en-GB", parts);
  }
  function times() {
    for (const t of document.querySelectorAll("time[datetime]")) {
      const at = new Date(t.getAttribute("datetime"));
      t.title = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
      if (t.classList.contains("clock")) { t.textContent = clock(at, true); continue; }
      const seconds = (at - Date.now()) / 1000;
      const unit = units.find((u) => Math.abs(seconds) >= u[1]) || units[3];
      t.textContent = relative.format(Math.round(seconds / unit[1]), unit[0]);
      if (Math.abs(seconds) < 60) continue; // a clock with minutes says no more
      const small = document.createElement("small");
      small.textContent = clock(at);
      t.append(" ", small);
    }
  }
  // Fields for times: on the clock of the viewer.
  function zones() {
    for (const input of document.querySelectorAll("input[data-zone]")) {
      input.placeholder = input.placeholder.replace("UTC", zone);
      input.form?.addEventListener("formdata", (event) => event.formData.set("zone", zone));
    }
  }
  // Charts: a time axis on the clock of the viewer, and the values at a pointer or, with the arrow keys, at the focus.
  const drawn = "svg[data-begins]", box = document.createElement("div");
  let pointed; // { chart, step }: the place of a chart on the page, and of what is pointed at in it
  box.className = "readout";
  box.setAttribute("aria-live", "polite");
  function plot(svg) {
    const grid = svg.querySelector(".grid"), left = Number(grid.getAttribute("x1")), right = Number(grid.getAttribute("x2"));
    const begins = Number(svg.dataset.begins), step = Number(svg.dataset.step), every = Number(svg.dataset.every);
    const lines = [...svg.querySelectorAll("path[data-values]")].map((path) => ({ name: path.dataset.name, color: path.getAttribute("class"), values: path.dataset.values.split("|") }));
    const steps = lines[0].values.length, ends = begins + (steps - 1) * step;
    return { begins, ends, step, every, steps, lines, left, right, x: (at) => left + (right - left) * (at - begins) / (ends - begins) };
  }
  const edge = 36; // as the server has it
  function charts() {
    for (const svg of document.querySelectorAll(drawn)) {
      svg.setAttribute("tabindex", "0");
      const p = plot(svg), ticks = [...svg.querySelectorAll(".at")];
      for (const tick of ticks) {
        let at = Number(tick.dataset.at);
        const ahead = -60 * new Date(at * 1000).getTimezoneOffset();
        at -= ((ahead % p.every) + p.every) % p.every;
        if (at < p.begins) at += ticks.length * p.every;
        if (at > p.ends) { tick.remove(); continue; }
        const x = p.x(at), time = new Date(at * 1000), text = tick.querySelector("text");
        tick.setAttribute("transform", tick.getAttribute("transform").replace(/[\d.]+/, x.toFixed(1)));
        text.setAttribute("text-anchor", x < edge ? "start" : x > p.left + p.right - edge ? "end" : "middle");
        text.textContent = time.toLocaleString("en-GB", time.getHours() || time.getMinutes() ? { hour: "2-digit", minute: "2-digit", hourCycle: "h23" } : { weekday: "short", day: "numeric" });
      }
    }
    repoint();
  }
  // repoint shows what is pointed at when a chart was drawn again, or has another size.
  function repoint() {
    const svg = pointed && document.querySelectorAll(drawn)[pointed.chart];
    if (svg) point(svg, pointed.step);
  }
  // point shows the values of a step.
  function point(svg, step) {
    unpoint();
    const p = plot(svg), figure = svg.closest("figure");
    step = Math.max(0, Math.min(p.steps - 1, step));
    pointed = { chart: [...document.querySelectorAll(drawn)].indexOf(svg), step };
    const at = new Date((p.begins + step * p.step) * 1000), line = document.createElementNS("http://www.w3.org/2000/svg", "path");
    line.setAttribute("class", "cursor");
    line.setAttribute("d", "M" + p.x(at / 1000).toFixed(1) + ",20V172");
    svg.append(line);
    const time = document.createElement("strong");
    time.textContent = clock(at) + (p.step > 60 ? "–" + clock(new Date(at.getTime() + p.step * 1000)).slice(-5) : "");
    box.replaceChildren(time, ...p.lines.map((l) => {
      const row = document.createElement("span");
      row.className = "key " + l.color;
      row.textContent = l.name + " " + (l.values[step] || "–");
      return row;
    }));
    figure.append(box);
    const within = figure.getBoundingClientRect(), cursor = line.getBoundingClientRect();
    const x = cursor.left - within.left;
    // On a phone the box would cover the chart, and the finger the box: it is above them.
    box.style.top = cursor.top - within.top - (within.width < 500 ? box.offsetHeight + 4 : 0) + "px";
    box.style.left = x < within.width / 2 ? x + 10 + "px" : "auto";
    box.style.right = x < within.width / 2 ? "auto" : within.width - x + 10 + "px";
  }
  function unpoint() {
    pointed = undefined;
    box.remove();
    document.querySelector(".cursor")?.remove();
  }
  function follows(event) {
    const svg = event.target.closest?.(drawn);
    if (svg) {
      const p = plot(svg), shown = svg.getBoundingClientRect();
      const x = (event.clientX - shown.left) * svg.viewBox.baseVal.width / shown.width;
      point(svg, Math.round((x - p.left) / (p.right - p.left) * (p.steps - 1)));
    } else if (pointed && !document.activeElement?.matches(drawn)) unpoint();
  }
  addEventListener("resize", repoint);
  document.addEventListener("pointermove", follows);
  document.addEventListener("pointerdown", follows);
  document.documentElement.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") follows(event); });
  // Who clicks on a chart does not stand there: what is shown goes on being renewed.
  document.addEventListener("mousedown", (event) => { if (event.target.closest?.(drawn)) event.preventDefault(); });
  document.addEventListener("focusin", (event) => { if (event.target.matches(drawn)) point(event.target, Infinity); });
  document.addEventListener("focusout", (event) => { if (event.target.matches(drawn)) unpoint(); });
  document.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1, Home: -Infinity, End: Infinity }[event.key];
    if (by === undefined || !pointed || !event.target.matches?.(drawn)) return;
    event.preventDefault();
    point(event.target, pointed.step + by);
  });
  // The overview comes as a stream of events. Where none can be had, it is read again once a minute.
  const shown = document.querySelector("[data-live]");
  const silence = 60000; // more than twice the time after which a stream says that it lives
  let source, later, heard;
  function show(html) {
    if (shown.contains(document.activeElement)) { later = html; return; } // whoever stands on a link stays there
    later = undefined;
    shown.innerHTML = html;
    document.querySelector("footer time")?.setAttribute("datetime", new Date().toISOString());
    times(); charts();
  }
  function follow() {
    if (source) source.close();
    source = document.hidden ? undefined : new EventSource(shown.dataset.live);
    heard = Date.now();
    if (!source) return;
    source.onmessage = (event) => { heard = Date.now(); show(event.data); };
    source.addEventListener("alive", () => { heard = Date.now(); });
  }
  // A connection whose other end has gone may stay open, as behind a proxy: nothing fails, and nothing comes.
  function listen() {
    if (source && source.readyState === EventSource.OPEN && Date.now() - heard > silence) follow();
  }
  async function again() {
    if (!source || source.readyState !== EventSource.CLOSED) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.redirected) { location.reload(); return; }
      if (!answer.ok) return;
      show(new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("[data-live]").innerHTML);
    } catch (e) { /* the next round tries again */ }
  }
  // The button is made here, because without this script it would do nothing.
  function copies() { for (const pre of document.querySelectorAll("pre[data-copy]")) {
    const button = document.createElement("button"), around = document.createElement("div");
    button.type = "button"; button.className = "copy"; button.textContent = "Copy";
    button.setAttribute("aria-live", "polite");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(pre.textContent);
        button.textContent = "Copied";
      } catch (e) {
        getSelection().selectAllChildren(pre);
        button.textContent = "Selected: press Ctrl-C";
      }
    });
    around.className = "copied";
    pre.replaceWith(around);
    around.append(pre, button);
  } }
  // Lists are read again while they are looked at, unless someone is about to do something there.
  const list = document.querySelector("main[data-renew]");
  function busy() {
    const at = document.activeElement;
    return document.hidden || !getSelection().isCollapsed || (at !== list && list.contains(at)) || list.querySelector("details[open]:not([data-shown])") !== null ||
      [...list.querySelectorAll("input, textarea")].some((i) => i.value !== i.defaultValue || i.checked !== i.defaultChecked) ||
      [...list.querySelectorAll("option")].some((o) => o.selected !== o.defaultSelected && o.parentElement.selectedIndex > 0);
  }
  async function renew() {
    if (busy()) return;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin" });
      if (answer.redirected) { location.reload(); return; }
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (busy()) return; // now: a link that is replaced while it is pressed is not followed
      list.innerHTML = page.querySelector("main").innerHTML;
      document.querySelector("footer").innerHTML = page.querySelector("footer").innerHTML;
      times(); zones(); copies(); charts();
    } catch (e) { /* the next round tries again */ }
  }
  document.querySelector('nav a[aria-current="page"]')?.scrollIntoView({ block: "nearest", inline: "center" });
  times();
  zones();
  copies();
  charts();
  if (list) setInterval(renew, Number(list.dataset.renew) * 1000);
  setInterval(times, 15000);
  if (shown) {
    follow();
    document.addEventListener("visibilitychange", follow);
    shown.addEventListener("focusout", () => setTimeout(() => { if (later !== undefined) show(later); }));
    setInterval(again, 60000);
    setInterval(listen, 10000);
  }
})();
