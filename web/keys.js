// Keys for those who keep their hands on them: g and a letter goes to a page, j and k move in a list, ? says so.
// Everything that they do can be done with Tab and Enter too.
"use strict";

(() => {
  const help = document.getElementById("keys");
  // How long after a g the letter may come.
  const PATIENCE_MS = 1500;
  let goUntil = 0;

  function isTyping(target) {
    return (
      target instanceof Element &&
      (target.closest("input, textarea, select, [contenteditable]") !== null || target.isContentEditable)
    );
  }

  // The entries of the lists on the page, each by its first link.
  function entries() {
    const rows = document.querySelectorAll("main [data-list] > li, main table > tbody > tr");
    const links = [...rows].map((row) => row.querySelector("a[href]"));
    return links.filter((link) => link !== null && link.getClientRects().length > 0);
  }

  function move(step) {
    const links = entries();
    if (links.length === 0) {
      return;
    }
    const row = document.activeElement?.closest("[data-list] > li, tbody > tr") ?? null;
    const at = links.findIndex((link) => link === document.activeElement || (row !== null && row.contains(link)));
    const next = at === -1 ? (step > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + step));
    links[next].focus();
    links[next].scrollIntoView({ block: "nearest" });
  }

  function go(key) {
    const link = [...document.querySelectorAll("[data-go]")].find((each) => each.dataset.go === key);
    link?.click();
    return link !== undefined;
  }

  function showHelp() {
    if (help && !help.open) {
      help.showModal();
    }
  }

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) {
      return;
    }
    if (help?.open) {
      if (event.key === "?") {
        help.close();
        event.preventDefault();
      }
      return;
    }
    const isGoing = performance.now() < goUntil;
    goUntil = 0;
    if (isGoing && go(event.key)) {
      event.preventDefault();
    } else if (event.key === "g") {
      goUntil = performance.now() + PATIENCE_MS;
    } else if (event.key === "j" || event.key === "k") {
      move(event.key === "j" ? 1 : -1);
      event.preventDefault();
    } else if (event.key === "?") {
      showHelp();
      event.preventDefault();
    }
  });

  const button = document.querySelector("[data-show-keys]");
  if (button && help) {
    button.hidden = false;
    button.addEventListener("click", showHelp);
  }
})();
