// Keeps the live part of the page current, and shows its times in the zone of the browser. Without this script the page shows the state as of its loading, and
// everything on it still works.
"use strict";

// Times in the zone of the browser. Without this script they are in UTC, and say so.
globalThis.TidelockTimes = (() => {
  const WRITTEN = /(\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d(\.\d+)? UTC$/;

  // `2026-01-31T09:30:00.000Z` in the zone of the browser, as exact as it was written.
  function local(utc) {
    const time = new Date(utc);
    if (Number.isNaN(time.getTime())) {
      return utc;
    }
    const shifted = new Date(time.getTime() - time.getTimezoneOffset() * 60_000);
    return shifted.toISOString().slice(0, utc.length - 1).replace("T", " ");
  }

  function show(root) {
    for (const element of root.querySelectorAll("[datetime], [data-utc]")) {
      const time = local(element.getAttribute("datetime") ?? element.dataset.utc);
      const shown = (text) => text.replace(WRITTEN, (_, date) => (date === undefined ? time.slice(11, 19) : time));
      if (WRITTEN.test(element.textContent)) {
        element.textContent = shown(element.textContent);
      }
      if (WRITTEN.test(element.getAttribute("title") ?? "")) {
        element.setAttribute("title", shown(element.getAttribute("title")));
      }
    }
  }

  return { local, show };
})();

(() => {
  const live = document.querySelector("[data-live]");
  let shown = live?.innerHTML;
  globalThis.TidelockTimes.show(document);
  if (!live) {
    return;
  }
  const badge = document.querySelector("[data-phase-badge]");
  const trouble = document.querySelector("[data-trouble]");
  const waiting = document.querySelector("[data-needs]");
  // What the title is without the number of things that wait.
  const title = document.title.replace(/^\(\d+\+?\) /, "");
  // Since when the daemon has not answered.
  let silentSince;
  const SLOW_MS = 5000;
  // Somebody who has just started the daemon again waits for this.
  const SILENT_MS = 2000;
  // Nobody sees more than this, and each look costs the daemon a page.
  const BREATH_MS = 250;
  let timer = 0;
  let lookedAt = -BREATH_MS;
  // A swap between press and release would lose the click.
  let pressed = false;
  // One look at a time; a change that comes meanwhile leads to another one.
  let looking = false;
  let lookAgain = false;
  let changes;

  live.addEventListener("pointerdown", () => {
    pressed = true;
  });
  for (const end of ["pointerup", "pointercancel"]) {
    document.addEventListener(end, () => {
      pressed = false;
    });
  }

  function parts(root) {
    return [...root.querySelectorAll("[data-part]")];
  }

  function scrollers(root) {
    return [...root.querySelectorAll("[data-scroll]")];
  }

  function isAtEnd(element) {
    return element.scrollTop + element.clientHeight >= element.scrollHeight - 4;
  }

  // What somebody marks to copy would be lost with the text.
  function isMarked(element) {
    const selection = document.getSelection();
    return selection !== null && !selection.isCollapsed && selection.containsNode(element, true);
  }

  // Runs a change of the page, and puts focus and scroll positions back to where they were. Who reads the end of a
  // log sees its new end.
  function keepingPlace(change) {
    const focused = live.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    const places = scrollers(live).map((element) => ({
      name: element.dataset.scroll,
      atEnd: isAtEnd(element),
      top: element.scrollTop,
      left: element.scrollLeft,
    }));
    change();
    for (const element of scrollers(live)) {
      const place = places.find((each) => each.name === element.dataset.scroll);
      element.scrollTop = place === undefined || place.atEnd ? element.scrollHeight : place.top;
      element.scrollLeft = place?.left ?? 0;
    }
    if (focused !== undefined && document.activeElement?.dataset.key !== focused) {
      const again = [...live.querySelectorAll("[data-key]")].find((element) => element.dataset.key === focused);
      again?.focus({ preventScroll: true });
    }
  }

  // What somebody has unfolded, or folded, stays so.
  function keepFolds(next) {
    const before = [...live.querySelectorAll("details[data-key]")];
    for (const fresh of next.querySelectorAll("details[data-key]")) {
      const same = before.find((each) => each.dataset.key === fresh.dataset.key);
      fresh.open = same?.open ?? fresh.open;
    }
  }

  // Where the page is made of parts, only those that differ are replaced. One that is to be kept comes with the page
  // alone, and is empty in what follows.
  function swap(html) {
    if (pressed || html === shown) {
      return;
    }
    const next = document.createElement("template");
    next.innerHTML = html;
    globalThis.TidelockTimes.show(next.content);
    keepFolds(next.content);
    const before = parts(live);
    const after = parts(next.content);
    const fit = before.length === after.length && before.every((part, at) => part.dataset.part === after[at].dataset.part);
    if (before.length === 0 || !fit) {
      for (const part of after.filter((each) => "keep" in each.dataset)) {
        part.replaceWith(before.find((each) => each.dataset.part === part.dataset.part) ?? part);
      }
      keepingPlace(() => live.replaceChildren(next.content));
      shown = html;
      return;
    }
    for (const attribute of next.content.querySelector("[data-phase]")?.attributes ?? []) {
      live.querySelector("[data-phase]")?.setAttribute(attribute.name, attribute.value);
    }
    const changed = before
      .map((part, at) => [part, after[at]])
      .filter(([part, fresh]) => !("keep" in fresh.dataset) && !part.isEqualNode(fresh));
    const free = changed.filter(([part]) => !isMarked(part));
    if (free.length > 0) {
      keepingPlace(() => free.forEach(([part, fresh]) => part.replaceWith(fresh)));
    }
    // What was held back is looked at again.
    shown = free.length === changed.length ? html : "";
  }

  function showPhase() {
    const part = live.querySelector("[data-phase]");
    if (part && badge) {
      badge.textContent = part.dataset.phaseLabel;
      badge.className = part.dataset.phaseClass;
    }
    showWaiting(part?.dataset.waiting ?? "");
  }

  // How many things wait for a person, where they see it from another tab.
  function showWaiting(count) {
    document.title = count === "" ? title : `(${count}) ${title}`;
    if (waiting) {
      waiting.hidden = count === "";
      waiting.textContent = count;
      waiting.setAttribute("aria-label", `${count} need you`);
    }
  }

  function showTrouble(text) {
    if (trouble && trouble.querySelector("p").textContent !== text) {
      trouble.hidden = text === "";
      trouble.querySelector("p").textContent = text;
    }
  }

  // The daemon does not answer. That is tried again and again, so the page comes back by itself.
  function showSilence(why) {
    silentSince ??= new Date();
    if (badge) {
      badge.textContent = "Not connected";
      badge.className = "badge bad";
    }
    const since = silentSince.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });
    showTrouble(
      `Not connected since ${since}: ${why}. This page shows the last known state ` +
        "and reconnects by itself. If the daemon was stopped, start it with `tidelock up`.",
    );
  }

  async function look() {
    const response = await fetch(live.dataset.live, { signal: AbortSignal.timeout(SLOW_MS) });
    if (response.status === 401) {
      // The daemon does not know us any more. The page says what to do.
      location.reload();
      return;
    }
    if (!response.ok) {
      throw Object.assign(new Error(`the daemon responded with status ${response.status}`), { status: response.status });
    }
    swap(await response.text());
    silentSince = undefined;
    showPhase();
    showTrouble("");
  }

  async function refresh() {
    clearTimeout(timer);
    if (document.hidden) {
      return;
    }
    if (looking) {
      lookAgain = true;
      return;
    }
    looking = true;
    lookedAt = performance.now();
    let next = SLOW_MS;
    try {
      await look();
      next = Number(live.querySelector("[data-refresh-ms]")?.dataset.refreshMs) || SLOW_MS;
    } catch (error) {
      next = SILENT_MS;
      showSilence(error.status === undefined ? "the daemon isn't responding" : error.message);
    }
    looking = false;
    if (lookAgain) {
      lookAgain = false;
      next = BREATH_MS;
    }
    timer = setTimeout(refresh, next);
  }

  // Looks again because something has changed: at once, but not again and again.
  function soon() {
    clearTimeout(timer);
    timer = setTimeout(refresh, Math.max(0, lookedAt + BREATH_MS - performance.now()));
  }

  // A stream says when there is something to see. A page that nobody looks at lets go of it, because a browser has
  // only a few connections for all of our pages together.
  function listen() {
    changes?.close();
    changes = undefined;
    if (live.dataset.events && !document.hidden) {
      changes = new EventSource(live.dataset.events);
      for (const name of ["servers", "jobs", "plans", "sessions", "activity"]) {
        changes.addEventListener(name, soon);
      }
    }
  }

  // Another script of the page follows a stream, and has heard of a change.
  document.addEventListener("tidelock:change", soon);
  document.addEventListener("visibilitychange", () => {
    listen();
    refresh();
  });
  for (const element of scrollers(live)) {
    element.scrollTop = element.scrollHeight;
  }
  listen();
  timer = setTimeout(refresh, 1000);
})();
