// Times in the viewer's zone, relative; texts that are copied with one click; and the overview, which is renewed while it is looked at.
"use strict";
(function () {
  const units = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  function times() {
    for (const t of document.querySelectorAll("time[datetime]")) {
      const at = new Date(t.getAttribute("datetime"));
      const seconds = (at - Date.now()) / 1000;
      const unit = units.find((u) => Math.abs(seconds) >= u[1]) || units[3];
      t.textContent = relative.format(Math.round(seconds / unit[1]), unit[0]);
      t.title = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" });
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
  for (const pre of document.querySelectorAll("pre[data-copy]")) {
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
  }
  document.querySelector('nav a[aria-current="page"]')?.scrollIntoView({ block: "nearest", inline: "center" });
  times();
  setInterval(times, 15000);
  if (shown) {
    follow();
    document.addEventListener("visibilitychange", follow);
    shown.addEventListener("focusout", () => setTimeout(() => { if (later !== undefined) show(later); }));
    setInterval(again, 60000);
    setInterval(listen, 10000);
  }
})();
