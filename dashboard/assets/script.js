// Times in the viewer's zone; texts that are copied with one click; and what is renewed while it is looked at.
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
  // The overview comes as a stream of events. Where none can be had, it is read again once a minute.
  const shown = document.querySelector("[data-live]");
  const silence = 60000; // more than twice the time after which a stream says that it lives
  let source, later, heard;
  function show(html) {
    if (shown.contains(document.activeElement)) { later = html; return; } // whoever stands on a link stays there
    later = undefined;
    shown.innerHTML = html;
    document.querySelector("footer time")?.setAttribute("datetime", new Date().toISOString());
    times();
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
      if (!answer.ok || busy()) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      list.innerHTML = page.querySelector("main").innerHTML;
      document.querySelector("footer").innerHTML = page.querySelector("footer").innerHTML;
      times(); zones(); copies();
    } catch (e) { /* the next round tries again */ }
  }
  document.querySelector('nav a[aria-current="page"]')?.scrollIntoView({ block: "nearest", inline: "center" });
  times();
  zones();
  copies();
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
