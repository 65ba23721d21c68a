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

  const typing = (part) => {
    const at = document.activeElement;
    return at && part.contains(at) && at.matches("input, select, textarea");
  };
  const chips = (root) => new Map([...root.querySelectorAll("[data-move]")].map((chip) => [chip.dataset.move, chip]));
  const place = (chip) => chip.closest("[data-row]")?.dataset.row;
  const swap = (fresh) => {
    const changed = [];
    for (const part of document.querySelectorAll("[data-live]")) {
      const next = fresh.getElementById(part.id);
      if (!next || typing(part) || next.isEqualNode(part)) continue;
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
      const answer = await fetch(location.href, { headers: { "kedge-part": "1" }, redirect: "manual" });
      if (answer.type === "opaqueredirect" || answer.status === 401) { location.reload(); return; }
      if (answer.ok) swap(new DOMParser().parseFromString(await answer.text(), "text/html"));
    } catch { /* the stream says when the hub is back */ }
    cost = performance.now() - asked; asking = false;
    if (again) refresh();
  };
  const listen = () => {
    if (!document.querySelector("[data-live]") || !window.EventSource) return;
    const news = new EventSource("/live");
    let lost = false;
    news.addEventListener("tick", () => { say("live", "live"); refresh(); lost = false; });
    news.onerror = () => {
      if (!lost) { lost = true; say("lost", "no contact with the hub since " + new Date().toLocaleTimeString()); }
      if (news.readyState === EventSource.CLOSED) setTimeout(listen, 3000 + Math.random() * 4000);
    };
    addEventListener("pagehide", () => news.close(), { once: true });
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
