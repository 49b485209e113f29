#!/usr/bin/env bash
# Makes the home that `old_home` in crates/tidelock/tests opens: `scripts/old_home.sh TIDELOCK DIRECTORY`.
#
# Run it with the binary of a release, then run the test once with UPDATE_SNAPSHOTS=1 and the same release. What a release said
# about its own home is what every later one must say.
set -euo pipefail
[ "${CLEAN:-}" ] || exec env -i CLEAN=1 PATH=/usr/bin:/bin HOME=/tmp/tidelock-old-home TIDELOCK_ACTOR=me bash "$0" "$@"
tidelock=$(realpath "$1")
out=$(realpath "$2")
# No path of this machine gets into the home, nor anything of the environment.
directory=/tmp/tidelock-old-home
project=$directory/shop
rm -rf "$directory"
mkdir -p "$project"
export TIDELOCK_HOME=$directory/home
unset CLEAN OLDPWD
trap '"$tidelock" down >/dev/null 2>&1 || true; rm -rf "$directory"' EXIT
cd "$project"
unset OLDPWD
git init -q
printf 'fn main() {\n    println!("hello");\n}\n' > main.rs
printf 'notes\n' > NOTES.md
git add . && git -c user.name=me -c user.email=me@example.com commit -qm first

t() { "$tidelock" "$@" >/dev/null 2>&1 || true; }

# Jobs: done, failed, cancelled, retried, in a lane, with a key, and one that waits for a long time.
t job run --wait --title 'says hello' -- sh -c 'echo hello; echo oops >&2'
t job run --wait --title 'fails twice' --retries 1 --retry-pause 10ms -- sh -c 'exit 3'
t job run --title 'runs long' --key once -- sleep 1000
t job cancel last --why 'wrong branch' --wait
t job run --wait --title 'in a lane' --lane narrow:2 -- true
t job run --wait --title 'much' -- sh -c 'seq 1 5000'
t job run --title 'next year' --delay 8760h -- echo late

# Plans: sealed, applied, undone, discarded, in conflict, with a check that fails, and one inside another.
t exec --title 'sealed' -- sh -c 'sed -i s/hello/goodbye/ main.rs; echo more >> NOTES.md'
t exec --title 'applied and undone' -- sh -c 'echo one > one.txt'
t plan apply @
t plan undo @
t exec --title 'applied' -- sh -c 'printf "\0\1\2" > binary; chmod +x binary; ln -s NOTES.md link'
t plan apply @
t exec --title 'discarded' -- sh -c 'echo two > two.txt'
t plan discard @ --force
t exec --title 'in conflict' -- sh -c 'sed -i s/hello/hallo/ main.rs'
sed -i s/hello/welcome/ main.rs
t plan apply @
t exec --title 'checked' -- sh -c 'echo three > three.txt'
t plan check @ --add false

# Sessions: a turn with everything in it, one that was cancelled, a fork, an archived one.
cat > everything.yaml <<'Y'
steps:
  - think: Where is the greeting?
  - say: I change the greeting.
  - edit: {path: main.rs, find: welcome, replace: hi}
  - shell: cat main.rs
  - say: Done.
Y
t run --script everything.yaml --yes 'say hi'
t run --script everything.yaml 'again'
printf 'steps: [say: {text: "a b c d e f g h i j k l m n o p", every: 1s}]\n' > slow.yaml
"$tidelock" run --script slow.yaml 'slowly' >/dev/null 2>&1 &
sleep 2
t session cancel @
wait $! || true
t session fork @
t session rename @ 'a fork'
t session archive @

# Breakers that were set by hand.
t breaker force model:gpt open
t breaker record model:gpt failure

"$tidelock" down >/dev/null
tar -C "$directory/home" --owner=0 --group=0 --exclude=daemon.log --exclude='*.lock' --exclude='*.open' --exclude=token \
    -czf "$out/home.tar.gz" state
