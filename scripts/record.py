#!/usr/bin/env python3
"""Records docs/demo.svg: two agents on one repository, in a real terminal, with a real daemon.

    scripts/record.py [--tidelock PATH] [--out FILE]

Every line of the picture was written by the program. Only what differs from run to run is made the same: ids, ages, and the
directory. Nothing beyond Python and git is needed. The daemon has a home of its own, and is stopped in the end.
"""

import argparse
import fcntl
import html
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import tempfile
import termios

ROOT = pathlib.Path(__file__).resolve().parent.parent
COLUMNS, ROWS = 108, 27
SHOWN_DIRECTORY = "/home/me/shop"

CART = "def total(prices):\n    return sum(prices)\n"
SCRIPTS = {
    "tax.yaml": """\
steps:
  - say: I add the tax where the sum is made.
  - edit: {path: cart.py, find: "sum(prices)", replace: "sum(prices) * 1.2"}
  - shell: python3 -c 'import cart; print(cart.total([10, 5]))'
""",
    "discount.yaml": """\
steps:
  - say: The discount belongs into the sum.
  - edit: {path: cart.py, find: "sum(prices)", replace: "sum(prices) * 0.9"}
""",
}

# What is typed. {0} and {1} are the ends of the ids of the two plans.
SCENES = [
    ("# two agents, one repository; each works in a sandbox of its own", 0.3),
    ("tidelock run --script tax.yaml 'add the tax'", 1.1),
    ("tidelock run --script discount.yaml 'add a discount'", 1.0),
    ("tidelock plan list                  # both are done; the overlap is seen before anybody applies", 2.0),
    ("tidelock plan diff {0}", 1.3),
    ("tidelock plan apply {0}", 1.1),
    ("tidelock plan apply {1}           # the same line: named, and nothing is touched", 2.4),
    ("tidelock plan undo {0}            # takes this one back, and leaves the rest alone", 1.1),
    ("cat cart.py", 2.0),
]

# Ids are random, and these are as good as any.
STEADY = [
    "01M7H8Q1K0XY6HQSEJJ0N8XDXX",
    "01M7H8Q2BNDJQMY2EFDX2PBNCB",
    "01M7H8Q34XH2AV3CF7DWQ8YQ44",
    "01M7H8Q36SFEPNP53NM6E6P0AB",
]
ID = re.compile(r"_([0-7][0-9A-HJKMNP-TV-Z]{25})\b")


def on_a_terminal(line, directory, environment):
    """What a line writes to a terminal of our size."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    child = subprocess.Popen(
        ["sh", "-c", line], cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:
            break
        if not piece:
            break
        written += piece
    os.close(ours)
    child.wait()
    return written.decode().replace("\r\n", "\n")


class Steady:
    """Makes what differs from run to run the same."""

    def __init__(self, directory):
        self.directory = str(directory)
        self.ids = {}

    def text(self, text):
        for found in ID.findall(text):
            if found not in self.ids:
                # The ends must differ too: they are what people type.
                number = len(self.ids)
                self.ids[found] = STEADY[number] if number < len(STEADY) else found
        for found, steady in self.ids.items():
            text = text.replace(found, steady).replace(found[-6:], steady[-6:])
        text = text.replace(self.directory, SHOWN_DIRECTORY)
        return re.sub(r"\b\d+ (ms|s)\b( *)", lambda age: "2 s" + " " * (len(age[0]) - 3), text)


def play(tidelock):
    """Runs all scenes, and returns what was typed and what came of it."""
    with tempfile.TemporaryDirectory(prefix="tidelock-demo-") as below:
        below = pathlib.Path(below)
        shop, home, programs = below / "shop", below / "home", below / "bin"
        for directory in (shop, home, programs):
            directory.mkdir()
        (programs / "tidelock").symlink_to(tidelock)
        environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "HOME": str(below),
            "TIDELOCK_HOME": str(home),
            "TIDELOCK_LISTEN": "127.0.0.1:0",
            "TIDELOCK_ACTOR": "me",
            "TERM": "xterm-256color",
            "GIT_PAGER": "cat",
            "LANG": "C.UTF-8",
        }
        (shop / "cart.py").write_text(CART)
        for name, script in SCRIPTS.items():
            (shop / name).write_text(script)
        (shop / ".gitignore").write_text("*.yaml\n__pycache__/\n")
        for command in (
            ["git", "init", "-q", "."],
            ["git", "add", "."],
            ["git", "-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "-qm", "a shop"],
        ):
            subprocess.run(command, cwd=shop, env=environment, check=True)
        steady, ends, scenes = Steady(shop), [], []
        try:
            subprocess.run([tidelock, "up"], env=environment, check=True, stdout=subprocess.DEVNULL)
            for line, pause in SCENES:
                typed = line.format(*ends) if "{" in line else line
                said = on_a_terminal(typed, shop, environment)
                for found in re.findall(r"plan_\w{20}(\w{6}) is sealed", said):
                    ends.append(found)
                scenes.append((steady.text(typed), steady.text(said), pause))
        finally:
            subprocess.run([tidelock, "down"], env=environment, check=False, stdout=subprocess.DEVNULL)
        return scenes


# Light first, then dark: names of classes for the colours that the program uses.
COLOURS = {
    "31": ("r", "#b3261e", "#ff7b72"),
    "32": ("g", "#1a7f37", "#56d364"),
    "33": ("y", "#8a5a00", "#e3b341"),
    "36": ("c", "#0b6e8a", "#76e3ea"),
    "2": ("d", "#6a737d", "#8b949e"),
    "1": ("b", None, None),
}
FONT_PX, LINE_PX, CHARACTER_PX, EDGE_PX, BAR_PX = 13, 18, 7.83, 16, 30


def spans(line):
    """A line with its colours as text of the picture."""
    parts, classes = [], []
    for part in re.split(r"(\x1b\[[0-9;]*[A-Za-z])", line):
        if part.startswith("\x1b["):
            if part.endswith("m"):
                for code in part[2:-1].split(";"):
                    classes = [] if code in ("", "0") else classes + [COLOURS[code][0]] if code in COLOURS else classes
            continue
        if part:
            text = html.escape(part, quote=False)
            parts.append(f'<tspan class="{" ".join(classes)}">{text}</tspan>' if classes else text)
    return "".join(parts)


def wrapped(said):
    """The lines of a terminal of our size. The few that are too long have no colours."""
    lines = said.rstrip("\n").split("\n") if said.strip() else []
    for line in lines:
        if "\x1b" in line or len(line) <= COLUMNS:
            yield line
        else:
            yield from (line[at : at + COLUMNS] for at in range(0, len(line), COLUMNS))


def draw(scenes):
    """The animation: lines appear, and the page moves up when it is full."""
    rows, now = [], 0.5
    for typed, said, pause in scenes:
        is_comment = typed.startswith("#")
        duration = 0.02 if is_comment else min(0.7, 0.012 * len(typed))
        rows.append({"at": now, "typed": typed, "for": duration})
        now += duration + 0.25
        for line in wrapped(said):
            rows.append({"at": now, "line": line})
            now += 0.03
        rows.append({"at": now, "line": ""})
        now += pause
    total = now + 1.5
    percent = lambda moment: f"{100 * moment / total:.2f}%"
    css, body = [], []
    for number, row in enumerate(rows):
        y = EDGE_PX + BAR_PX + LINE_PX * (number + 1) - 5
        if "typed" in row:
            text, start, end = row["typed"], row["at"], row["at"] + row["for"]
            command, _, remark = text.partition("  #")
            escape = lambda words: html.escape(words, quote=False)
            shown = escape(command) + (f'<tspan class="d">  #{escape(remark)}</tspan>' if remark else "")
            if text.startswith("#"):
                shown = f'<tspan class="d">{escape(text)}</tspan>'
            width = len(text) + 2
            css.append(
                f"@keyframes t{number}{{0%,{percent(start)}{{clip-path:inset(0 100% 0 0);animation-timing-function:steps({width})}}"
                f"{percent(end)},100%{{clip-path:inset(0 0 0 0)}}}}#l{number}{{animation-name:t{number}}}"
            )
            body.append(f'<text id="l{number}" x="{EDGE_PX}" y="{y}"><tspan class="p">$ </tspan>{shown}</text>')
        elif row["line"].strip():
            css.append(
                f"@keyframes t{number}{{0%,{percent(row['at'])}{{opacity:0}}{percent(row['at'] + 0.01)},100%{{opacity:1}}}}"
                f"#l{number}{{animation-name:t{number}}}"
            )
            body.append(f'<text id="l{number}" x="{EDGE_PX}" y="{y}">{spans(row["line"])}</text>')
    # The page moves up by whole lines, so that the newest one is always in sight.
    steps, last = ["0%{transform:translateY(0)}"], 0
    for number, row in enumerate(rows):
        up = max(0, number + 1 - ROWS) * LINE_PX
        if up != last:
            steps.append(f"{percent(row['at'] - 0.005)}{{transform:translateY(-{last}px)}}{percent(row['at'])}{{transform:translateY(-{up}px)}}")
            last = up
    steps.append(f"100%{{transform:translateY(-{last}px)}}")
    width = round(COLUMNS * CHARACTER_PX + 2 * EDGE_PX)
    height = ROWS * LINE_PX + 2 * EDGE_PX + BAR_PX
    light = "".join(f".{name}{{fill:{light}}}" for name, light, _ in COLOURS.values() if light)
    dark = "".join(f".{name}{{fill:{dark}}}" for name, _, dark in COLOURS.values() if dark)
    style = f"""
svg{{font:{FONT_PX}px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}}
text{{white-space:pre;fill:#1f2328}}.back{{fill:#fbfbfa;stroke:#d0d7de}}.bar{{fill:#eef0f2}}.dot{{fill:#c4c9cf}}
.title{{fill:#57606a;text-anchor:middle}}.p{{fill:#0b6e8a}}.b{{font-weight:700}}{light}
#page text,#page{{animation-duration:{total:.2f}s;animation-iteration-count:infinite;animation-timing-function:step-end}}
#page{{animation-name:up}}@keyframes up{{{"".join(steps)}}}
{"".join(css)}
@media (prefers-color-scheme:dark){{text{{fill:#e6edf3}}.back{{fill:#0d1117;stroke:#30363d}}.bar{{fill:#161b22}}.dot{{fill:#30363d}}
.title{{fill:#8b949e}}.p{{fill:#76e3ea}}{dark}}}
@media (prefers-reduced-motion:reduce){{#page text{{animation:none}}#page{{animation:none;transform:translateY(-{last}px)}}}}
"""
    label = "Two agents change the same line in sandboxes of their own; one is applied, the other is refused with the conflict named, and the first is taken back."
    dots = "".join(f'<circle class="dot" cx="{EDGE_PX + 4 + 16 * dot}" cy="{BAR_PX / 2}" r="5"/>' for dot in range(3))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" aria-label="{label}">'
        f"<style>{style}</style>"
        f'<defs><clipPath id="window"><rect x="0" y="{BAR_PX + 9}" width="{width}" height="{height - BAR_PX - 13}"/></clipPath></defs>'
        f'<rect class="back" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>'
        f'<path class="bar" d="M1 {BAR_PX}V9a8 8 0 0 1 8-8h{width - 18}a8 8 0 0 1 8 8v{BAR_PX - 9}z"/>{dots}'
        f'<text class="title" x="{width / 2}" y="20">{SHOWN_DIRECTORY}</text>'
        f'<g clip-path="url(#window)"><g id="page">\n' + "\n".join(body) + "\n</g></g></svg>\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tidelock", default=None, help="the program; otherwise the release build, or the one on the PATH")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "demo.svg")
    arguments = parser.parse_args()
    built = ROOT / "target" / "release" / "tidelock"
    tidelock = arguments.tidelock or (str(built) if built.exists() else shutil.which("tidelock"))
    if not tidelock:
        parser.error("there is no tidelock; build it with `cargo build --release`, or name it with --tidelock")
    picture = draw(play(str(pathlib.Path(tidelock).resolve())))
    arguments.out.write_text(picture)
    print(f"{arguments.out}: {len(picture.encode()) / 1000:.0f} KB")


if __name__ == "__main__":
    main()
