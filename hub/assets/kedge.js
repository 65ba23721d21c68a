// Keeps the page live: on news from the hub it asks for the same address again and swaps the parts that differ.
// Everything works without it, by links and forms.
(() => {
  "use strict";
  const line = document.querySelector("[data-line]");
  const say = (state, words) => { if (line) { line.dataset.line = state; line.textContent = words; } };
  const zone = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
  // "since 09:12", "since Tuesday 14:03", or with the date
  const clock = (moment) => {
    const days = (new Date().setHours(0, 0, 0, 0) - new Date(moment).setHours(0, 0, 0, 0)) / 864e5;
    const day = days < 1 ? {} : days < 6 ? { weekday: "long" } : { year: "numeric", month: "short", day: "numeric" };
    return moment.toLocaleString(undefined, { hour: "2-digit", minute: "2-digit", ...day });
  };
  const times = (root) => root.querySelectorAll("time[datetime]").forEach((time) => {
    const moment = new Date(time.dateTime);
    if (isNaN(moment)) return;
    time.title = zone.format(moment);
    if ("clock" in time.dataset) time.textContent = clock(moment);
  });

  // Parts

  // Nothing moves under the hand: news waits while the pointer is down, text is selected or a field has the focus.
  let down = false, pending = null;
  const busy = () => down || document.activeElement?.matches("input:not([type=hidden]), select, textarea") || !(getSelection()?.isCollapsed ?? true);
  const take = (fresh) => {
    pending = fresh;
    if (busy()) { show(); return; }
    pending = null;
    swap(fresh);
    show();
  };
  const free = () => setTimeout(() => { if (pending && !busy()) take(pending); }, 50);
  addEventListener("pointerdown", () => { down = true; }, true);
  for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => { down = false; free(); }, true);
  for (const end of ["click", "focusout"]) addEventListener(end, free, true);
  document.addEventListener("selectionchange", free);
  const chips = (root) => new Map([...root.querySelectorAll("[data-move]")].map((chip) => [chip.dataset.move, chip]));
  const place = (chip) => chip.closest("[data-row]")?.dataset.row;
  const swap = (fresh) => {
    if (fresh.title) document.title = fresh.title;
    const changed = [];
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(part.id);
      if (!next || next.isEqualNode(part)) continue;
      changed.push([part, next]);
    }
    if (!changed.length) return;
    // A chip that stands in another row now is seen moving there; nothing else is animated.
    const before = chips(document);
    const moved = [...chips(fresh)].filter(([key, chip]) => before.has(key) && place(before.get(key)) !== place(chip)).map(([key]) => key);
    const apply = () => {
      const focus = document.activeElement;
      const rows = new Set();
      for (const [part, next] of changed) {
        const open = new Map([...part.querySelectorAll("details[id]")].map((details) => [details.id, details.open]));
        const before = new Map([...part.querySelectorAll("[data-row]")].map((row) => [row.dataset.row, plain(row)]));
        part.replaceWith(next);
        times(next);
        next.querySelectorAll("details[id]").forEach((details) => { if (open.has(details.id)) details.open = open.get(details.id); });
        for (const row of next.querySelectorAll("[data-row]")) {
          if (before.size && before.get(row.dataset.row) !== plain(row)) rows.add(row);
        }
      }
      rows.forEach((row) => row.classList.add("changed"));
      if (focus && !focus.isConnected) {
        const href = focus.getAttribute("href");
        const again = focus.id ? document.getElementById(focus.id) : href && document.querySelector(`main a[href="${CSS.escape(href)}"]`);
        again?.focus({ preventScroll: true });
      }
    };
    if (!moved.length || !document.startViewTransition || matchMedia("(prefers-reduced-motion: reduce)").matches) return apply();
    const name = (word) => { const now = chips(document); moved.forEach((key, index) => { const chip = now.get(key); if (chip) chip.style.viewTransitionName = word && word + index; }); };
    name("move-");
    const transition = document.startViewTransition(() => { apply(); name("move-"); });
    transition.ready.catch(() => {}); // a window that is resized ends it
    transition.finished.then(() => name(""), () => name(""));
  };
  // A row without its times: those change by themselves.
  const plain = (row) => {
    const copy = row.cloneNode(true);
    copy.querySelectorAll("time").forEach((time) => { time.textContent = ""; time.title = ""; });
    copy.querySelectorAll("[style]").forEach((chip) => chip.removeAttribute("style"));
    return copy.innerHTML;
  };

  // News: at most one question at a time, and never more than a fifth of the time.

  // What is shown was true then. A stream that says nothing, or an answer that doesn't come, and the page says so.
  let good = new Date(), heard = 0, failed = false;
  const QUIET = 11000, LONGEST = 10000;
  const show = () => {
    if (failed || (heard && performance.now() - heard > QUIET)) return say("lost", "connection lost since " + good.toLocaleTimeString());
    if (heard) say(pending ? "held" : "live", pending ? "live; updates are paused while you interact with the page" : "live");
  };

  let asked = 0, cost = 0, waiting = null, asking = false, again = false;
  const refresh = () => {
    if (asking) { again = true; return; }
    if (waiting || document.hidden) return;
    const pause = Math.max(400 + Math.random() * 300, cost * 5) - (performance.now() - asked);
    waiting = setTimeout(ask, Math.max(0, pause));
  };
  const ask = async () => {
    waiting = null; asking = true; again = false; asked = performance.now();
    try {
      const answer = await fetch(location.href, { headers: { "kedge-part": "1" }, redirect: "manual", signal: AbortSignal.timeout(LONGEST) });
      if (answer.type === "opaqueredirect" || answer.status === 401) { location.reload(); return; }
      if (answer.status >= 500) throw answer.status;
      const text = await answer.text();
      failed = false; good = new Date();
      if (answer.ok) take(new DOMParser().parseFromString(text, "text/html"));
    } catch {
      if (!failed) { failed = true; setTimeout(refresh, 2000 + Math.random() * 2000); } else setTimeout(refresh, 4000);
    }
    cost = Math.min(performance.now() - asked, 4000); asking = false;
    show();
    if (again) refresh();
  };
  const listen = () => {
    if (!document.querySelector("[data-live]") || !window.EventSource) return;
    const news = new EventSource("/live");
    const alive = () => { heard = performance.now(); if (!failed) good = new Date(); show(); };
    const retry = (wait) => { if (news.ended) return; news.ended = true; news.close(); setTimeout(listen, wait); };
    news.addEventListener("tick", () => { alive(); refresh(); });
    news.addEventListener("alive", alive);
    news.onerror = () => { heard = heard && -QUIET; show(); retry(2000 + Math.random() * 2000); };
    const watch = setInterval(() => {
      if (news.ended) return clearInterval(watch);
      show();
      if (heard && performance.now() - heard > QUIET) retry(0);
    }, 1000);
    addEventListener("pagehide", () => { news.ended = true; news.close(); }, { once: true });
    addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); }, { once: true });
  };
  setInterval(refresh, 30000); // "5 min ago" grows old by itself
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });

  // Keys

  const go = JSON.parse(document.body.dataset.keys || "{}");
  let prefix = 0;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const field = event.target.matches?.("input, select, textarea");
    if (event.key === "Escape" && field) return event.target.blur();
    if (field) return;
    if (event.key === "/") { event.preventDefault(); document.querySelector("#find")?.select(); return; }
    if (event.key === "?") { location.href = "/keys"; return; }
    if (event.key === "g") { prefix = Date.now(); return; }
    if (Date.now() - prefix < 1500 && go[event.key]) { location.href = go[event.key]; }
    prefix = 0;
  });
  document.querySelectorAll("form[data-auto] select").forEach((select) => select.addEventListener("change", () => select.form.requestSubmit()));

  // An address holds what is chosen, not every empty field.
  document.querySelectorAll("form[data-auto]").forEach((form) => form.addEventListener("formdata", ({ formData }) => {
    for (const [field, value] of [...formData]) if (!value) formData.delete(field);
  }));

  times(document);
  listen();
})();
