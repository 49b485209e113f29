// The output of a job, live, with colours and search. Without this script the page shows its last lines as of its
// loading. What a job writes may mean harm: it becomes text nodes here, and nothing else.
"use strict";

(() => {
  const section = document.querySelector("[data-output]");
  if (!section) {
    return;
  }
  const { Screen, runs } = globalThis.TidelockAnsi;
  const part = (name) => document.getElementById(`output-${name}`);
  const [box, tools, older, none, state] = ["lines", "tools", "older", "none", "state"].map(part);
  const [search, hitCount, only, times, follow] = ["search", "hits", "only", "times", "follow"].map(part);

  // How many lines are in the page. Browsers get slow with more; the link beside the heading has them all.
  const MAX_LINES = 5000;
  // How many more there may be until the page is drawn again.
  const SLACK_LINES = 1000;
  // How many hits are marked in one line. Somebody who looks for a single letter cannot want them all.
  const MAX_HITS = 20;
  const RETRY_MS = 5000;

  const lines = [];
  const changed = new Set();
  let drawing = false;
  let pattern;
  let current;
  // Whether lines were left out before those that are here.
  let isCut = Number(section.dataset.after) > 0;
  let isTakenOver = false;

  // The lines

  function drop(count) {
    for (const line of lines.splice(0, count)) {
      line.isDropped = true;
      line.element?.remove();
      line.element = undefined;
      changed.delete(line);
    }
    isCut ||= count > 0;
  }

  function open(channel, at) {
    if (lines.length >= MAX_LINES + SLACK_LINES) {
      drop(SLACK_LINES);
    }
    const line = { channel, at };
    lines.push(line);
    return line;
  }

  function touch(line) {
    // It was begun long ago, and others have written since. It goes on at the end.
    if (line.isDropped) {
      line.isDropped = false;
      lines.push(line);
    }
    changed.add(line);
    drawSoon();
  }

  let now = "";
  const screens = new Map(
    ["stdout", "stderr", "note"].map((channel) => [channel, new Screen(() => open(channel, now), touch)]),
  );

  function textOf(item) {
    if (item.base64 === undefined) {
      return item.text ?? "";
    }
    return new TextDecoder().decode(Uint8Array.from(atob(item.base64), (byte) => byte.charCodeAt(0)));
  }

  function write(item) {
    const text = textOf(item);
    now = item.at;
    // A remark is a line of its own.
    const end = item.channel === "note" && !text.endsWith("\n") ? "\n" : "";
    screens.get(item.channel)?.feed(text + end);
  }

  // Drawing

  function element(name, classes, ...children) {
    const made = document.createElement(name);
    made.className = classes;
    made.append(...children);
    return made;
  }

  // Where the pattern is found in a text.
  function hitsIn(text) {
    const hits = [];
    for (const hit of pattern === undefined ? [] : text.matchAll(pattern)) {
      hits.push([hit.index, hit.index + hit[0].length]);
      if (hits.length === MAX_HITS) {
        break;
      }
    }
    return hits;
  }

  // A run, cut where hits begin and end. Only the first part of a hit counts as one.
  function pieces(text, start, hits) {
    const made = [];
    let at = 0;
    for (const [from, to] of hits) {
      const [begin, end] = [Math.max(from - start, at), Math.min(to - start, text.length)];
      if (begin < end) {
        made.push(text.slice(at, begin), element("mark", from >= start ? "hit" : "", text.slice(begin, end)));
        at = end;
      }
    }
    made.push(text.slice(at));
    return made.filter((piece) => piece !== "");
  }

  function draw(line) {
    line.element ??= element(
      "div",
      "",
      element("time", "", globalThis.TidelockTimes.local(line.at)),
      element("span", "out-text"),
    );
    const shown = runs(line);
    const hits = hitsIn(shown.map((run) => run.text).join(""));
    const content = [];
    let start = 0;
    for (const run of shown) {
      const made = pieces(run.text, start, hits);
      content.push(...(run.classes === "" ? made : [element("span", run.classes, ...made)]));
      start += run.text.length;
    }
    line.element.lastChild.replaceChildren(...content);
    const marks = `${hits.length > 0 ? " has-hit" : ""}${hits.length === MAX_HITS ? " has-more" : ""}`;
    line.element.className = `out-line ${line.channel}${marks}`;
    return line.element;
  }

  function drawAll() {
    drawing = false;
    if (!isTakenOver && lines.length > 0) {
      isTakenOver = true;
      box.replaceChildren();
    }
    drop(Math.max(0, lines.length - MAX_LINES));
    const fresh = [];
    for (const line of changed) {
      const isFresh = line.element === undefined;
      const drawn = draw(line);
      if (isFresh) {
        fresh.push(drawn);
      }
    }
    changed.clear();
    box.append(...fresh);
    box.hidden = box.childElementCount === 0;
    none.hidden = !box.hidden;
    if (isTakenOver) {
      older.hidden = !isCut;
    }
    showHits();
    if (follow.checked) {
      box.scrollTop = box.scrollHeight;
    }
  }

  function drawSoon() {
    if (!drawing) {
      drawing = true;
      requestAnimationFrame(drawAll);
    }
  }

  // Search

  const hits = box.getElementsByClassName("hit");

  function showHits() {
    if (current !== undefined && !current.isConnected) {
      current = undefined;
    }
    const place = current === undefined ? 0 : [...hits].indexOf(current) + 1;
    let text = "";
    if (pattern !== undefined) {
      const more = box.querySelector(".has-more") === null ? "" : " or more";
      const all = hits.length === 1 ? "1 match" : `${hits.length}${more} matches`;
      text = hits.length === 0 ? "no matches" : place > 0 ? `${place} of ${hits.length}${more}` : all;
    }
    if (hitCount.textContent !== text) {
      hitCount.textContent = text;
    }
  }

  function find(text) {
    // What is typed is taken as it is, not as a pattern.
    const literal = text.replace(/[\^$\\.*+?()[\]{}|/]/g, "\\$&");
    pattern = text === "" ? undefined : new RegExp(literal, "giu");
    current = undefined;
    box.classList.toggle("only-hits", only.checked && pattern !== undefined);
    lines.forEach((line) => changed.add(line));
    drawSoon();
  }

  function step(by) {
    const all = [...hits];
    if (all.length === 0) {
      return;
    }
    const from = current === undefined ? (by > 0 ? -1 : 0) : all.indexOf(current);
    current?.classList.remove("current");
    current = all[(from + by + all.length) % all.length];
    current.classList.add("current");
    follow.checked = false;
    current.scrollIntoView({ block: "center", inline: "nearest" });
    showHits();
  }

  search.addEventListener("input", () => find(search.value));
  only.addEventListener("change", () => find(search.value));
  times.addEventListener("change", () => box.classList.toggle("times", times.checked));
  part("next").addEventListener("click", () => step(1));
  part("previous").addEventListener("click", () => step(-1));
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      step(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape" && search.value !== "") {
      search.value = "";
      find("");
    }
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest("input, textarea, select") !== null;
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key === "/") {
      event.preventDefault();
      search.focus();
    } else if (event.key === "n" || event.key === "N") {
      step(event.key === "n" ? 1 : -1);
    }
  });

  // Who is at the end stays there; who scrolls up is left alone.
  box.addEventListener("scroll", () => {
    follow.checked = box.scrollTop + box.clientHeight >= box.scrollHeight - 4;
  });
  // At once: the news of an earlier scroll may be on its way, and must find the reader at the end.
  follow.addEventListener("change", () => {
    if (follow.checked) {
      box.scrollTop = box.scrollHeight;
    }
  });

  // The stream

  let last = Number(section.dataset.after);
  // The id of the last event, to come back to. It also says when the event was written.
  let lastId = section.dataset.after;
  let stream;
  let retry = 0;
  let isOver = false;

  function tellOthers() {
    document.dispatchEvent(new Event("tidelock:change"));
  }

  function onItem(handle) {
    return (event) => {
      const sequence = Number.parseInt(event.lastEventId, 10);
      // A stream that comes back may repeat what we have.
      if (sequence > last) {
        [last, lastId] = [sequence, event.lastEventId];
        handle(JSON.parse(event.data));
      }
    };
  }

  // What we have beyond a place is not valid: a database that crashed had shown it and lost it. It follows again.
  function onResync(event) {
    const { after } = JSON.parse(event.data);
    const text =
      after < last
        ? "The database crashed and lost some of this output. What is still known follows again."
        : "Earlier output was dropped.";
    [last, lastId] = [after, event.lastEventId];
    write({ channel: "note", at: "", text });
  }

  function close() {
    clearTimeout(retry);
    stream?.close();
    stream = undefined;
  }

  // A page that nobody looks at lets go of its stream, because a browser has only a few connections for all of our
  // pages together. It goes on where it was.
  function listen() {
    close();
    if (isOver || document.hidden) {
      return;
    }
    stream = new EventSource(`${section.dataset.output}&after=${encodeURIComponent(lastId)}`);
    stream.addEventListener("output", onItem(write));
    stream.addEventListener("progress", onItem(tellOthers));
    stream.addEventListener("resync", onResync);
    stream.addEventListener("end", () => {
      isOver = true;
      close();
      state.textContent = "The job has ended. End of output.";
      tellOthers();
    });
    stream.addEventListener("open", () => {
      state.textContent = "";
    });
    stream.addEventListener("error", () => {
      state.textContent = "Disconnected. The output may be incomplete.";
      if (stream?.readyState === EventSource.CLOSED) {
        retry = setTimeout(listen, RETRY_MS);
      }
    });
  }

  tools.hidden = false;
  box.scrollTop = box.scrollHeight;
  document.addEventListener("visibilitychange", listen);
  listen();
})();
