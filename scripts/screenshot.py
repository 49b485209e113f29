#!/usr/bin/env python3
"""Makes docs/page.png: the page of a real daemon on which several agents are at work.

    scripts/screenshot.py [--tidelock PATH] [--out FILE] [--size 1280x1080] [--dark]

The daemon, the repository and everything that happens in it are made here, in a mount namespace of our own, so that the
picture shows /home/me/shop and nothing of the machine that it was made on. Python, git, unshare and chromium are needed. All
processes are gone in the end.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHOP = pathlib.Path("/home/me/shop")
PATIENCE_SECONDS = 60

FILES = {
    "cart.py": "from prices import price\n\n\ndef total(items):\n    return sum(price(item) for item in items)\n",
    "prices.py": "PRICES = {'tea': 4, 'pot': 25}\n\n\ndef price(item):\n    return PRICES[item]\n",
    "test_cart.py": "from cart import total\n\n\ndef test_total():\n    assert total(['tea', 'pot']) == 29\n",
    "README.md": "# Shop\n\nA cart, and what it costs.\n",
    ".gitignore": "__pycache__/\n",
}

AGENTS = {
    "add a discount for members": """\
steps:
  - say: A discount belongs to the cart, since prices stay what they are.
  - edit: {path: cart.py, find: "def total(items):", replace: "def total(items, member=False):"}
  - edit: {path: cart.py, find: "    return sum(price(item) for item in items)", replace: "    whole = sum(price(item) for item in items)\\n    return whole * 0.9 if member else whole"}
  - say: Done. Members pay nine tenths.
""",
    "charge the tax": """\
steps:
  - say: The tax is added where the sum is made.
  - edit: {path: cart.py, find: "sum(price(item) for item in items)", replace: "sum(price(item) for item in items) * 1.2"}
  - say: Done.
""",
    "describe the prices": """\
steps:
  - write: {path: docs/prices.md, text: "# Prices\\n\\nAll prices are whole euros.\\n"}
  - say: A short page, as you asked.
""",
}
ASKS = """\
steps:
  - say: I have renamed the function, and would like to run the migration.
  - edit: {path: prices.py, find: "def price(item):", replace: "def price_of(item):"}
  - ask: May I run ./migrate.sh on the test database?
"""
GOES_ON = """\
steps:
  - say: I read the tests first.
  - read: test_cart.py
  - shell: echo 'collected 1 item' && sleep 600
"""


class Stage:
    """A daemon with a home of its own."""

    def __init__(self, tidelock, below):
        self.tidelock, self.below = tidelock, below
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": "/home/me",
            "TIDELOCK_HOME": str(below / "home"),
            "TIDELOCK_LISTEN": "127.0.0.1:0",
            "TIDELOCK_ACTOR": "me",
            "LANG": "C.UTF-8",
        }

    def run(self, *arguments, check=True, actor="me"):
        environment = {**self.environment, "TIDELOCK_ACTOR": actor}
        command = [self.tidelock, *arguments]
        done = subprocess.run(command, cwd=SHOP, env=environment, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
        if check and done.returncode != 0:
            sys.exit(f"{command} ended with {done.returncode}: {done.stderr}")
        return done.stdout

    def json(self, *arguments):
        return json.loads(self.run(*arguments, "--json"))

    def wait(self, what, condition):
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            if time.monotonic() > give_up_at:
                sys.exit(f"waited in vain for {what}")
            time.sleep(0.1)

    def script(self, name, text):
        path = self.below / f"{name}.yaml"
        path.write_text(text)
        return str(path)


def make_shop(stage):
    SHOP.mkdir(parents=True)
    for name, text in FILES.items():
        (SHOP / name).write_text(text)
    (stage.below / "home").mkdir()
    as_me = ["-c", "user.name=me", "-c", "user.email=me@localhost"]
    for command in (["init", "-q", "."], ["add", "."], [*as_me, "commit", "-qm", "a shop"]):
        subprocess.run(["git", *command], cwd=SHOP, env=stage.environment, check=True)


def fill(stage):
    """Makes a state with something of everything."""
    stage.run("up")
    for number, (prompt, script) in enumerate(AGENTS.items()):
        stage.run("run", "--script", stage.script(f"done{number}", script), prompt)
    plans = {plan["title"]: plan["id"] for plan in stage.json("plan", "list")["plans"]}
    stage.run("plan", "apply", plans["charge the tax"])
    # The other one changed the same line, and is refused with the place.
    stage.run("plan", "apply", plans["add a discount for members"], check=False)
    stage.run("job", "run", "--wait", "--title", "unit tests", "--", "sh", "-c", "echo 1 passed")
    stage.run("job", "run", "--wait", "--title", "lint", "--", "sh", "-c", "echo 'cart.py:5: line too long' >&2; exit 1", check=False)
    stage.run("job", "run", "--title", "nightly build", "--", "sh", "-c", "echo '::progress 3/8 wheels'; sleep 600")
    stage.run("run", "--detach", "--script", stage.script("asks", ASKS), "rename price to price_of")
    stage.run("run", "--detach", "--script", stage.script("goes_on", GOES_ON), "find out why the test is slow")
    stage.run("breaker", "record", "model:large", "failure", "--retry-after", "20m")
    sessions = lambda: stage.json("session", "list")["sessions"]
    stage.wait("a question", lambda: any((session.get("active") or {}).get("asking") for session in sessions()))
    for query in (["lsp", "hover", "cart.py:4:5"], ["context", "where is the total made"]):
        stage.run(*query, check=False)


def picture(stage, arguments, out):
    link = stage.json("up")["page"]["url"]
    width, height = arguments.size.split("x")
    command = [
        arguments.chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
        f"--user-data-dir={stage.below / 'chromium'}", f"--window-size={width},{height}", f"--screenshot={out}",
        # A page that listens to a stream is never done, so there is no waiting for that.
        "--timeout=5000",
    ]
    if arguments.dark:
        command.append("--blink-settings=preferredColorScheme=0")
    subprocess.run([*command, link], check=True, timeout=PATIENCE_SECONDS, stderr=subprocess.DEVNULL)


def inside(arguments):
    """The part that runs in the namespace."""
    below = pathlib.Path(arguments.inside)
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/home"], check=True)
    stage = Stage(str(below / "tidelock"), below)
    make_shop(stage)
    try:
        fill(stage)
        picture(stage, arguments, below / "page.png")
    finally:
        stage.run("down", check=False)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tidelock", help="the program; otherwise the release build, or the one on the PATH")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "page.png")
    parser.add_argument("--size", default="1280x1080")
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--chromium", default="chromium")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.inside:
        inside(arguments)
        return
    built = ROOT / "target" / "release" / "tidelock"
    tidelock = arguments.tidelock or (str(built) if built.exists() else shutil.which("tidelock"))
    if not tidelock:
        parser.error("there is no tidelock; build it with `cargo build --release`, or name it with --tidelock")
    with tempfile.TemporaryDirectory(prefix="tidelock-page-") as below:
        # What lies below /home cannot be seen in the namespace.
        script = shutil.copy(__file__, below)
        shutil.copy(tidelock, pathlib.Path(below) / "tidelock")
        namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
        command = [sys.executable, script, *sys.argv[1:], "--inside", below]
        subprocess.run([*namespace, *command], check=True, cwd=below)
        shutil.copy(pathlib.Path(below) / "page.png", arguments.out)
    print(f"{arguments.out}: {arguments.out.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
