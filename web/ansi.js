// What a terminal would show of a text, in lines with colours. It is the twin of `page/ansi.rs`, which leaves the
// colours out; `ansi_cases.json` beside that has what both must agree on.
//
// Whoever writes the text may mean harm. Nothing of it becomes markup: a line is a list of runs, each a text and the
// names of classes that are chosen here. A sequence without an end takes at most its own line with it, and a line
// without an end is cut.
"use strict";

globalThis.TidelockAnsi = (() => {
  const LINE_CHARACTERS = 4000;
  const PARAMETER_CHARACTERS = 64;

  // Control characters, and those that turn the direction of what stands around them.
  const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;

  // The sixteen colours as most terminals have them. All others become the nearest of these, because the page allows
  // no colours but those of its style sheet.
  const PALETTE = [
    [0, 0, 0], [205, 0, 0], [0, 205, 0], [205, 205, 0], [0, 0, 238], [205, 0, 205], [0, 205, 205], [229, 229, 229],
    [127, 127, 127], [255, 0, 0], [0, 255, 0], [255, 255, 0], [92, 92, 255], [255, 0, 255], [0, 255, 255],
    [255, 255, 255],
  ];
  const CUBE = [0, 95, 135, 175, 215, 255];

  function nearest(red, green, blue) {
    let best = 0;
    let least = Infinity;
    PALETTE.forEach(([r, g, b], index) => {
      const distance = (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2;
      if (distance < least) {
        [best, least] = [index, distance];
      }
    });
    return best;
  }

  function indexed(index) {
    if (!(index >= 0 && index < 256)) {
      return undefined;
    }
    if (index < 16) {
      return index;
    }
    if (index >= 232) {
      const grey = 8 + 10 * (index - 232);
      return nearest(grey, grey, grey);
    }
    const place = index - 16;
    return nearest(CUBE[Math.floor(place / 36)], CUBE[Math.floor(place / 6) % 6], CUBE[place % 6]);
  }

  // The look of what follows. It is never changed, only replaced.
  const PLAIN = Object.freeze({
    foreground: undefined,
    background: undefined,
    bold: false,
    dim: false,
    italic: false,
    underlined: false,
    inverse: false,
    classes: "",
  });

  function classesOf(look) {
    let [front, back] = [look.foreground, look.background];
    if (look.inverse) {
      // The colours of the style sheet are made for the page's own ground, so that only these two can be exchanged as
      // they are.
      [front, back] = front === undefined ? ["ground", "text"] : [back, front];
    }
    return [
      front === undefined ? "" : `fg-${front}`,
      back === undefined ? "" : `bg-${back}`,
      look.bold ? "bold" : "",
      look.dim ? "dim" : "",
      look.italic ? "italic" : "",
      look.underlined ? "underlined" : "",
    ]
      .filter((name) => name !== "")
      .join(" ");
  }

  // A colour of 38 or 48: `5;INDEX` or `2;RED;GREEN;BLUE`. Returns it, and how many numbers it took.
  function extended(numbers) {
    if (numbers[0] === 5) {
      return [indexed(numbers[1]), 2];
    }
    if (numbers[0] === 2) {
      const parts = numbers.slice(1, 4);
      const isColour = parts.length === 3 && parts.every((part) => part >= 0 && part < 256);
      return [isColour ? nearest(...parts) : undefined, 4];
    }
    return [undefined, numbers.length];
  }

  // What follows after a sequence that ends in `m`.
  function restyled(look, parameters) {
    if (!/^[0-9;:]*$/.test(parameters)) {
      return look;
    }
    const numbers = parameters.split(/[;:]/).map(Number);
    let next = { ...look };
    for (let at = 0; at < numbers.length; at += 1) {
      const number = numbers[at];
      if (number === 0) {
        next = { ...PLAIN };
      } else if (number === 1) {
        next.bold = true;
      } else if (number === 2) {
        next.dim = true;
      } else if (number === 3) {
        next.italic = true;
      } else if (number === 4 || number === 21) {
        next.underlined = true;
      } else if (number === 7) {
        next.inverse = true;
      } else if (number === 22) {
        next.bold = false;
        next.dim = false;
      } else if (number === 23) {
        next.italic = false;
      } else if (number === 24) {
        next.underlined = false;
      } else if (number === 27) {
        next.inverse = false;
      } else if (number >= 30 && number <= 37) {
        next.foreground = number - 30;
      } else if (number >= 90 && number <= 97) {
        next.foreground = number - 82;
      } else if (number === 39) {
        next.foreground = undefined;
      } else if (number >= 40 && number <= 47) {
        next.background = number - 40;
      } else if (number >= 100 && number <= 107) {
        next.background = number - 92;
      } else if (number === 49) {
        next.background = undefined;
      } else if (number === 38 || number === 48) {
        const [colour, taken] = extended(numbers.slice(at + 1));
        next[number === 38 ? "foreground" : "background"] = colour;
        at += taken;
      }
    }
    next.classes = classesOf(next);
    return Object.freeze(next);
  }

  // Makes lines of pieces of a text. `opened` is asked for an object when a line begins, and `touched` is told of every
  // line that has changed. What is in it is told by `runs`.
  class Screen {
    #opened;
    #touched;
    #line;
    #cursor = 0;
    #look = PLAIN;
    // "text", "escape", "sequence" or "words": what the next character belongs to.
    #within = "text";
    #parameters = "";

    constructor(opened, touched) {
      this.#opened = opened;
      this.#touched = touched;
    }

    feed(piece) {
      for (const character of piece) {
        if (character === "\n") {
          this.#open();
          freeze(this.#line);
          this.#touched(this.#line);
          this.#line = undefined;
          this.#cursor = 0;
          this.#within = "text";
        } else {
          this.#take(character);
        }
      }
      if (this.#line !== undefined) {
        this.#touched(this.#line);
      }
    }

    #open() {
      this.#line ??= this.#opened();
      this.#line.characters ??= [];
      this.#line.looks ??= [];
    }

    #take(character) {
      if (character === "\u001b") {
        this.#within = "escape";
      } else if (this.#within === "text") {
        this.#takeText(character);
      } else if (this.#within === "escape") {
        this.#takeEscape(character);
      } else if (this.#within === "sequence") {
        this.#takeSequence(character);
      } else if (character === "\u0007" || character === "\u009c") {
        this.#within = "text";
      }
    }

    #takeEscape(character) {
      if (character === "[") {
        this.#within = "sequence";
        this.#parameters = "";
      } else if ("]PX^_".includes(character)) {
        this.#within = "words";
      } else if (character < " " || character > "/") {
        this.#within = "text";
      }
    }

    #takeSequence(character) {
      if (character >= " " && character <= "?") {
        if (this.#parameters.length < PARAMETER_CHARACTERS) {
          this.#parameters += character;
        }
      } else if (character >= "@" && character <= "~") {
        this.#within = "text";
        if (character === "K") {
          this.#erase(this.#parameters);
        } else if (character === "m") {
          this.#look = restyled(this.#look, this.#parameters);
        }
      } else if (!HIDDEN.test(character)) {
        this.#within = "text";
        this.#takeText(character);
      }
    }

    #takeText(character) {
      if (character === "\r") {
        this.#cursor = 0;
      } else if (character === "\b") {
        this.#cursor = Math.max(0, this.#cursor - 1);
      } else if (character === "\t" || !HIDDEN.test(character)) {
        this.#put(character);
      }
    }

    #put(character) {
      this.#open();
      const { characters, looks } = this.#line;
      if (this.#cursor >= LINE_CHARACTERS) {
        this.#line.isCut = true;
        return;
      }
      while (characters.length < this.#cursor) {
        characters.push(" ");
        looks.push(PLAIN);
      }
      characters[this.#cursor] = character;
      looks[this.#cursor] = this.#look;
      this.#cursor += 1;
    }

    #erase(which) {
      if (this.#line === undefined) {
        return;
      }
      const { characters, looks } = this.#line;
      if (which === "" || which === "0") {
        characters.length = Math.min(characters.length, this.#cursor);
        looks.length = characters.length;
      } else if (which === "1") {
        const end = Math.min(this.#cursor + 1, characters.length);
        characters.fill(" ", 0, end);
        looks.fill(PLAIN, 0, end);
      } else if (which === "2") {
        characters.length = 0;
        looks.length = 0;
      }
    }
  }

  // A line that has ended takes less room.
  function freeze(line) {
    line.runs = runs(line);
    line.characters = undefined;
    line.looks = undefined;
  }

  // The runs of a line: neighbours that look the same.
  function runs(line) {
    if (line.runs !== undefined) {
      return line.runs;
    }
    const found = [];
    const { characters, looks } = line;
    for (let at = 0; at < characters.length; at += 1) {
      const last = found.at(-1);
      if (last !== undefined && last.classes === looks[at].classes) {
        last.text += characters[at];
      } else {
        found.push({ text: characters[at], classes: looks[at].classes });
      }
    }
    if (line.isCut) {
      found.push({ text: "…", classes: "" });
    }
    return found;
  }

  return { Screen, runs };
})();
