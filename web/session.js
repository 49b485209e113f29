// The conversation of a session, live. Without this script the page shows it as of its loading. What an agent says may
// mean harm: it becomes text nodes here, and nothing else.
//
// A turn is rendered by the server with the place in its stream that it goes up to. This goes on from there, event by
// event, so that nothing is missed and nothing comes twice. When it cannot go on (a turn has begun or ended, events were
// folded together), the conversation is fetched again, whole, with a new place.
"use strict";

(() => {
  const section = document.querySelector("[data-conversation]");
  if (!section) {
    return;
  }
  const list = section.querySelector("[data-turn-list]");
  const state = document.getElementById("stream-state");
  const RETRY_MS = 2000;
  // As in `session_turn.rs`: what hides or turns what stands around it.
  // eslint-disable-next-line no-control-regex
  const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

  function visible(text) {
    return text.replace(HIDDEN, "\ufffd");
  }

  function element(name, classes, ...children) {
    const made = document.createElement(name);
    made.className = classes;
    made.append(...children);
    return made;
  }

  function isAtEnd() {
    return section.getBoundingClientRect().bottom <= window.innerHeight + 80;
  }

  // Whoever reads the end goes on to see it. The place is measured once a frame, because that costs a layout.
  let frame = 0;

  function keepingEnd(change) {
    if (frame === 0) {
      const wasAtEnd = isAtEnd();
      frame = requestAnimationFrame(() => {
        frame = 0;
        if (wasAtEnd) {
          section.scrollIntoView({ block: "end" });
        }
      });
    }
    change();
  }

  function tellOthers() {
    document.dispatchEvent(new Event("tidelock:change"));
  }

  // The fold: the same as `Transcript` makes of the events.

  function itemOf(turn, number, make) {
    const items = turn.querySelector("[data-items]");
    let item = [...items.children].find((each) => each.dataset.item === String(number));
    if (item === undefined) {
      item = make();
      item.dataset.item = String(number);
      items.append(item);
    }
    return item;
  }

  function grow(target, delta) {
    const last = target.lastChild;
    if (last !== null && last.nodeType === Node.TEXT_NODE) {
      last.appendData(visible(delta));
    } else {
      target.append(visible(delta));
    }
  }

  function makeTool(tool) {
    const part = (name, classes) => {
      const made = element("pre", classes);
      made.setAttribute(name, "");
      return made;
    };
    const title = element("span", "");
    title.setAttribute("data-title", "");
    const word = element("span", "tool-state", "running");
    word.setAttribute("data-tool-state", "");
    const summary = element("summary", "", element("strong", "", visible(tool)), " ", title, " ", word);
    return element(
      "details",
      "item item-tool running",
      summary,
      part("data-arguments", "tool-arguments"),
      part("data-output-text", "tool-output"),
      part("data-answer", "tool-answer"),
    );
  }

  function note(turn, classes, ...children) {
    turn.querySelector("[data-items]").append(element("p", `item item-note ${classes}`, ...children));
  }

  const TOOL_WORDS = { done: "done", failed: "failed", denied: "denied", cancelled: "stopped" };

  const ANSWER_WORDS = { allow: "allowed", allow_always: "always allowed", deny: "denied" };

  const handlers = {
    text(turn, data) {
      grow(itemOf(turn, data.item, () => element("div", "item item-text")), data.delta);
    },
    reasoning(turn, data) {
      const item = itemOf(turn, data.item, () =>
        element("details", "item item-reasoning", element("summary", "", "Thinking"), element("div", "item-body")),
      );
      grow(item.querySelector(".item-body"), data.delta);
    },
    tool_call(turn, data) {
      itemOf(turn, data.item, () => makeTool(data.tool));
    },
    tool_arguments(turn, data) {
      grow(itemOf(turn, data.item, () => makeTool("")).querySelector("[data-arguments]"), data.delta);
    },
    tool_started(turn, data) {
      const item = itemOf(turn, data.item, () => makeTool(""));
      const tool = `${item.querySelector("summary strong").textContent} `;
      const title = visible(data.title);
      item.querySelector("[data-title]").textContent = title.startsWith(tool) ? title.slice(tool.length) : title;
      item.querySelector("[data-arguments]").textContent = visible(JSON.stringify(data.arguments, null, 2));
    },
    tool_output(turn, data) {
      grow(itemOf(turn, data.item, () => makeTool("")).querySelector("[data-output-text]"), data.delta);
    },
    tool_ended(turn, data) {
      const item = itemOf(turn, data.item, () => makeTool(""));
      const word = TOOL_WORDS[data.state] ?? "done";
      item.className = `item item-tool ${word}`;
      item.querySelector("[data-tool-state]").textContent = word;
      const answer = visible(data.answer);
      const output = item.querySelector("[data-output-text]");
      // Most tools answer with what they have said.
      output.textContent = answer.startsWith(output.textContent) ? "" : output.textContent;
      item.querySelector("[data-answer]").textContent = answer;
    },
    permission_asked(turn, data) {
      const answer = element("a", "", "waiting for your answer");
      answer.href = "#asking";
      answer.dataset.answerOf = data.permission;
      note(turn, "", `Asked you: ${visible(data.tool)} `, element("code", "", visible(data.subject)), " – ", answer);
      tellOthers();
    },
    permission_answered(turn, data) {
      const questions = [...turn.querySelectorAll("[data-answer-of]")];
      const question = questions.find((each) => each.dataset.answerOf === data.permission);
      const silence = data.answer === "deny" && data.by === "";
      question?.replaceWith(silence ? "timed out without an answer" : ANSWER_WORDS[data.answer] ?? "answered");
      tellOthers();
    },
    plan_changed(turn, data) {
      const link = element("a", "", "Plan");
      link.href = `/plans/${encodeURIComponent(data.plan)}`;
      note(turn, "", link, `: ${data.files === 1 ? "1 file" : `${data.files} files`} changed`);
      tellOthers();
    },
    trouble(turn, data) {
      note(turn, "item-trouble", element("code", "", visible(data.code)), ` ${visible(data.text)}`);
    },
    state() {
      tellOthers();
    },
  };

  // The stream

  let stream;
  let followed;
  let retry = 0;
  let fetching = false;
  let fetchAgain = false;

  function close() {
    clearTimeout(retry);
    stream?.close();
    stream = undefined;
    followed = undefined;
  }

  // The turn that is not over; there is one at most.
  function openTurn() {
    return [...list.querySelectorAll("[data-turn]")].find((turn) => !("over" in turn.dataset));
  }

  function onEvent(turn, event) {
    const sequence = Number.parseInt(event.lastEventId, 10);
    // A stream that comes back may repeat what we have.
    if (sequence <= Number.parseInt(turn.dataset.sequence, 10)) {
      return;
    }
    // With when it was written, so that we are told if the log has lost it when we come back.
    turn.dataset.sequence = event.lastEventId;
    const { data } = JSON.parse(event.data);
    keepingEnd(() => handlers[data.kind]?.(turn, data));
  }

  // A page that nobody looks at lets go of its stream, because a browser has only a few connections for all of our pages
  // together. It goes on where it was.
  function listen() {
    const turn = openTurn();
    if (document.hidden || turn === undefined) {
      close();
      return;
    }
    if (followed === turn && stream !== undefined && stream.readyState !== EventSource.CLOSED) {
      return;
    }
    close();
    followed = turn;
    const address = `${section.dataset.turns}${encodeURIComponent(turn.dataset.turn)}/events`;
    stream = new EventSource(`${address}?after=${encodeURIComponent(turn.dataset.sequence)}`);
    for (const kind of Object.keys(handlers)) {
      stream.addEventListener(kind, (event) => onEvent(turn, event));
    }
    stream.addEventListener("resync", () => fetchAll());
    stream.addEventListener("end", () => {
      close();
      fetchAll();
      tellOthers();
    });
    stream.addEventListener("open", () => {
      state.textContent = "";
    });
    stream.addEventListener("error", () => {
      state.textContent = "Disconnected. The conversation may be incomplete.";
      if (stream?.readyState === EventSource.CLOSED) {
        clearTimeout(retry);
        // The daemon may have come back with an end to this turn.
        retry = setTimeout(fetchAll, RETRY_MS);
      }
    });
  }

  // What somebody has unfolded stays so.
  function unfolded() {
    const names = [];
    for (const turn of list.querySelectorAll("[data-turn]")) {
      for (const item of turn.querySelectorAll("details[open][data-item]")) {
        names.push(`${turn.dataset.turn} ${item.dataset.item}`);
      }
    }
    return new Set(names);
  }

  async function fetchAll() {
    if (fetching) {
      fetchAgain = true;
      return;
    }
    fetching = true;
    try {
      const answer = await fetch(section.dataset.conversation + window.location.search, {
        headers: { accept: "text/html" },
      });
      if (!answer.ok) {
        throw new Error(`${answer.status}`);
      }
      const next = document.createElement("template");
      next.innerHTML = await answer.text();
      const open = unfolded();
      for (const turn of next.content.querySelectorAll("[data-turn]")) {
        for (const item of turn.querySelectorAll("details[data-item]")) {
          item.open = open.has(`${turn.dataset.turn} ${item.dataset.item}`);
        }
      }
      close();
      keepingEnd(() => list.replaceChildren(next.content));
      state.textContent = "";
      listen();
    } catch {
      clearTimeout(retry);
      retry = setTimeout(fetchAll, RETRY_MS);
    } finally {
      fetching = false;
      if (fetchAgain) {
        fetchAgain = false;
        fetchAll();
      }
    }
  }

  // The live part says which turn runs. If that is one that is not here, the conversation has gone on without us.
  function lookAtActive() {
    const active = document.querySelector("[data-active-turn]")?.dataset.activeTurn ?? "";
    const known = active === "" || [...list.querySelectorAll("[data-turn]")].some((turn) => turn.dataset.turn === active);
    const isStale = active === "" && openTurn() !== undefined && stream === undefined && !document.hidden;
    if ((!known && !window.location.search.includes("before=")) || isStale) {
      fetchAll();
    }
  }

  const live = document.querySelector("[data-live]");
  if (live) {
    new MutationObserver(lookAtActive).observe(live, { childList: true, subtree: true, attributes: true });
  }

  const prompt = document.getElementById("prompt");
  prompt?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      prompt.form.requestSubmit();
    }
  });

  document.addEventListener("visibilitychange", listen);
  if (openTurn() !== undefined) {
    section.scrollIntoView({ block: "end" });
  }
  listen();
})();
