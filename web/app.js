// Keeps the live part of the page current. Without this script the page shows the state as of its loading, and
// everything on it still works.
"use strict";

(() => {
  const live = document.querySelector("[data-live]");
  if (!live) {
    return;
  }
  const badge = document.querySelector("[data-phase-badge]");
  const trouble = document.querySelector("[data-trouble]");
  const SLOW_MS = 5000;
  let timer = 0;
  let shown = live.innerHTML;
  // A swap between press and release would lose the click.
  let pressed = false;

  live.addEventListener("pointerdown", () => {
    pressed = true;
  });
  for (const end of ["pointerup", "pointercancel"]) {
    document.addEventListener(end, () => {
      pressed = false;
    });
  }

  function swap(html) {
    if (pressed || html === shown) {
      return;
    }
    const focused = live.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    live.innerHTML = html;
    shown = html;
    if (focused !== undefined) {
      const again = [...live.querySelectorAll("[data-key]")].find((element) => element.dataset.key === focused);
      again?.focus({ preventScroll: true });
    }
  }

  function showPhase() {
    const part = live.querySelector("[data-phase]");
    if (part && badge) {
      badge.textContent = part.dataset.phaseLabel;
      badge.className = part.dataset.phaseClass;
    }
  }

  function showTrouble(text) {
    if (trouble) {
      trouble.hidden = text === "";
      trouble.querySelector("p").textContent = text;
    }
  }

  async function refresh() {
    clearTimeout(timer);
    if (document.hidden) {
      return;
    }
    let next = SLOW_MS;
    try {
      const response = await fetch(live.dataset.live, { signal: AbortSignal.timeout(SLOW_MS) });
      if (response.status === 401) {
        // The daemon was started again, and does not know us any more. The page says what to do.
        location.reload();
        return;
      }
      if (!response.ok) {
        throw new Error(`status ${response.status}`);
      }
      swap(await response.text());
      showPhase();
      showTrouble("");
      next = Number(live.querySelector("[data-refresh-ms]")?.dataset.refreshMs) || SLOW_MS;
    } catch {
      if (badge) {
        badge.textContent = "Not reachable";
        badge.className = "badge bad";
      }
      showTrouble("The daemon does not answer. What you see is the last state that it reported.");
    }
    timer = setTimeout(refresh, next);
  }

  document.addEventListener("visibilitychange", refresh);
  timer = setTimeout(refresh, 1000);
})();
