//! Small sources and their outlines, for every language. An outline has one line for each definition: its lines, the
//! last line of its signature, its kind, and its name below that of its parents; then the referenced names.

use std::fmt::Write as _;

use kernel::CancellationToken;

use super::{Outline, outline};
use crate::path::TreePath;

fn render(outline: &Outline) -> String {
    let mut text = String::new();
    for definition in &outline.definitions {
        let mut name = definition.name.clone();
        let mut parent = definition.parent;
        while let Some(place) = parent {
            let above = &outline.definitions[place as usize];
            name.insert_str(0, &format!("{}/", above.name));
            parent = above.parent;
        }
        let (lines, signature, kind) = (definition.lines, definition.signature, definition.kind.name());
        writeln!(text, "{lines} [{signature}] {kind} {name}").unwrap();
    }
    let uses = outline.references.iter().map(|reference| match reference.count {
        1 => reference.name.clone(),
        count => format!("{}*{count}", reference.name),
    });
    writeln!(text, "uses {}", uses.collect::<Vec<_>>().join(" ")).unwrap();
    text
}

#[track_caller]
fn check(path: &str, source: &str, expected: &str) {
    let scope = CancellationToken::new().scope();
    let found = outline(&TreePath::new(path).unwrap(), source.trim_start(), &scope).unwrap();
    let found = render(&found);
    let expected: String = expected
        .trim()
        .lines()
        .map(|line| format!("{}\n", line.trim()))
        .collect();
    assert_eq!(found, expected, "\n{path} is\n{found}");
}

#[test]
fn rust() {
    check(
        "a.rs",
        r#"
//! About the file.
use crate::log::{Head, commit};

/// A config.
/// Of two lines.
#[derive(Clone)]
pub struct Config<T> {
    /// How many.
    pub depth: usize, // as seen
    inner: Option<Head>,
}

// A unit.
struct Unit;

pub enum State {
    Idle,
    Busy { since: u64 },
}

impl<T> Config<T>
where
    T: Clone,
{
    pub const LIMIT: usize = 3;

    #[must_use]
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        const LOCAL: usize = 1;
        fn helper() {}
        let head = Head::read(text)?;
        assert_eq!(compute(LIMIT), State::Idle);
        commit::<T>(head).finish()
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result { write(f) }
}

trait Store: Send {
    type Item;
    fn get(&self, key: &str) -> Option<Self::Item>;
}

static TABLE: [u8; 2] = [
    1,
    2,
];

macro_rules! twice {
    ($x:expr) => { $x; $x };
}

mod tests {
    fn it_works() { super::run() }
}
mod elsewhere;
"#,
        "
        4-11 [7] type Config
        8-9 [9] value Config/depth
        10 [10] value Config/inner
        13-14 [14] type Unit
        16-19 [16] type State
        17 [17] value State/Idle
        18 [18] value State/Busy
        18 [18] value State/Busy/since
        21-35 [21-23] implementation Config
        25 [25] value Config/LIMIT
        27-34 [28] method Config/parse
        30 [30] function Config/parse/helper
        37-39 [37] implementation State
        38 [38] method State/fmt
        41-44 [41] interface Store
        42 [42] type Store/Item
        43 [43] method Store/get
        46-49 [46] value TABLE
        51-53 [51] macro twice
        55-57 [55] module tests
        56 [56] function tests/it_works
        uses Clone*2 Config Display Formatter Head*3 Idle Item LIMIT Option*2 ParseError Result*2 Send State*2 assert_eq commit*2 compute finish log read run write
        ",
    );
}

#[test]
fn python() {
    check(
        "a.py",
        r#"
#!/usr/bin/env python
"""About the file."""
from os.path import join as j, basename
import sys

LIMIT = 3
TABLE: dict[str, Item] = {
    "a": 1,
}

# A decorated one.
@dataclass(frozen=True)
@registry.add
class Config(Base, abc.Thing):
    """Doc."""

    depth: int = 0
    name: str

    def __init__(self, path: Path, *,
                 strict=False) -> None:
        local = open_file(path)
        self.x = basename(LIMIT)

    @property
    def value(self): return self.x

async def main():
    def inner():
        pass
    await Config.load(sys.argv)
"#,
        "
        6 [6] value LIMIT
        7-9 [7] value TABLE
        11-26 [14] type Config
        17 [17] value Config/depth
        18 [18] value Config/name
        20-23 [20-21] method Config/__init__
        25-26 [26] method Config/value
        28-31 [28] function main
        29-30 [29] function main/inner
        uses Base Config Item LIMIT Path Thing add basename*2 dataclass dict int join load open_file property str*2
        ",
    );
}

#[test]
fn javascript() {
    check(
        "a.jsx",
        r#"
import { readFile as rf, Other } from "fs";

// The limit.
const LIMIT = 3, other = compute(LIMIT);
export const table = {
  a: 1,
  run: () => go(),
};

/**
 * Parses.
 */
export async function parse(text) {
  const local = 1;
  function inner() {}
  return new Parser(text).parse();
}

class Config extends Base {
  depth = 1;
  onClick = () => { this.go(); };
  #secret() {}
  static load(path)
  {
    return <Panel title="x"><Row /></Panel>;
  }
}

const arrow = (a) => {
  const local = 2;
};
module.exports.old = function (x) { return x; };
describe("it", () => { const local = 3; });
"#,
        "
        3-4 [4] value LIMIT
        3-4 [4] value other
        5-8 [5] value table
        7 [7] function table/run
        10-17 [13] function parse
        15 [15] function parse/inner
        19-27 [19] type Config
        20 [20] value Config/depth
        21 [21] method Config/onClick
        22 [22] method Config/#secret
        23-26 [23] method Config/load
        29-31 [29] function arrow
        32 [32] function old
        uses Base LIMIT Other Panel*2 Parser Row compute describe go*2 parse readFile
        ",
    );
}

#[test]
fn typescript() {
    check(
        "a.ts",
        r#"
export interface Store<T> extends Base {
  name: string;
  get(key: Key): T;
}

export type Id = string | Other;

/** States. */
export enum State {
  Idle,
  Busy = 2,
}

@Component({ selector: "a" })
export abstract class Service implements Store<Item> {
  private readonly depth: number = 1;
  constructor(private store: Store<Item>) { super(); }
  abstract run(): void;
  handler = async (event: Event) => {
    this.store.get(Key.of(event));
  };
}

namespace Inner {
  export function helper(): void {}
}

export default function main<T>(
  first: T,
): Promise<void> {
  return helper(first);
}
declare const VERSION: string;
function overload(a: string): void;
"#,
        "
        1-4 [1] interface Store
        2 [2] value Store/name
        3 [3] method Store/get
        6 [6] type Id
        8-12 [9] type State
        10 [10] value State/Idle
        11 [11] value State/Busy
        14-22 [15] type Service
        16 [16] value Service/depth
        17 [17] method Service/constructor
        18 [18] method Service/run
        19-21 [19] method Service/handler
        24-26 [24] module Inner
        25 [25] function Inner/helper
        28-32 [28-30] function main
        33 [33] value VERSION
        34 [34] function overload
        uses Base Component Event Item*2 Key*2 Other Promise Store*2 get helper of
        ",
    );
}

#[test]
fn tsx() {
    check(
        "a.tsx",
        r#"
type Props = { name: string };
export const Panel: React.FC<Props> = ({ name }) => {
  return <Row label={name} />;
};
"#,
        "
        1 [1] type Props
        1 [1] value Props/name
        2-4 [2] function Panel
        uses FC Props React Row
        ",
    );
}

#[test]
fn go() {
    check(
        "a.go",
        r#"
package main

import "fmt"

// Limit is the limit.
const Limit = 3

const (
	// A is one.
	A, B = 1, 2
	C = iota
)

var table = map[string]int{
	"a": 1,
}

// Server serves.
type Server struct {
	Addr, Host string // where
	store *Store
}

type (
	Id int
	Getter interface {
		Get(key string) (Item, error)
	}
)

func (s *Server) Start(ctx context.Context) error {
	var local = 1
	return s.store.Open(fmt.Sprint(Limit))
}

func main() {
	run(http.StatusOK)
}
"#,
        "
        5-6 [6] value Limit
        9-10 [10] value A
        9-10 [10] value B
        11 [11] value C
        14-16 [14] value table
        18-22 [19] type Server
        20 [20] value Server/Addr
        20 [20] value Server/Host
        21 [21] value Server/store
        25 [25] type Id
        26-28 [26] interface Getter
        27 [27] method Getter/Get
        31-34 [31] method Start
        36-38 [36] function main
        uses Context Item Open Server Sprint StatusOK Store error*2 int*2 run string*3
        ",
    );
}

#[test]
fn c() {
    check(
        "a.c",
        r#"
#ifndef A_H
#define A_H
#define LIMIT 3
#define MAX(a, b) \
    ((a) > (b) ? (a) : (b))

/* A node. */
typedef struct node {
    int value;
    struct node *next;
    void (*visit)(int);
} node;

enum color { RED, GREEN = 2 };
typedef int (*callback)(int);
static int counter = 0;
extern char *names[3];

int parse(const char *text);

// Parses.
static struct node *
make_node(int value)
{
    int local = LIMIT;
    return helper(MAX(value, 1))->next;
}
#endif
"#,
        "
        3 [3] macro LIMIT
        4-5 [4] macro MAX
        7-12 [8] type node
        9 [9] value node/value
        10 [10] value node/next
        11 [11] value node/visit
        14 [14] type color
        14 [14] value color/RED
        14 [14] value color/GREEN
        15 [15] type callback
        16 [16] value counter
        17 [17] value names
        19 [19] function parse
        21-27 [22-23] function make_node
        uses A_H*2 LIMIT MAX helper node*2
        ",
    );
}

#[test]
fn cpp() {
    check(
        "a.cpp",
        r#"
namespace app::inner {

template <typename T>
class Stack : public Base<T> {
public:
    Stack();
    ~Stack() = default;
    void push(const T &value) { items.push_back(value); }
    T &top();
    bool operator==(const Stack &other) const;
private:
    std::vector<T> items;
};

using Ints = Stack<int>;

struct Point { int x, y; };

}

// Outside.
void Stack::clear() noexcept
{
    reset(kLimit);
}

int Outer::Inner::count() const { return app::inner::size(); }

template <class T>
T twice(T value) { return value + value; }

enum class Color { Red, Green };
"#,
        "
        1-19 [1] module inner
        3-13 [3-4] type inner/Stack
        6 [6] method inner/Stack/Stack
        7 [7] method inner/Stack/~Stack
        8 [8] method inner/Stack/push
        9 [9] method inner/Stack/top
        10 [10] method inner/Stack/operator==
        12 [12] value inner/Stack/items
        15 [15] type inner/Ints
        17 [17] type inner/Point
        17 [17] value inner/Point/x
        17 [17] value inner/Point/y
        21-25 [22] method clear
        27 [27] method count
        29-30 [29-30] function twice
        32 [32] type Color
        32 [32] value Color/Red
        32 [32] value Color/Green
        uses Base Inner Outer Stack*4 app inner push_back reset std vector
        ",
    );
}

#[test]
fn java() {
    check(
        "A.java",
        r#"
package a;

import java.util.List;

/** A service. */
@Component
public final class Service extends Base implements Runnable {
    private static final int LIMIT = 3;
    private List<Item> items, others;

    public Service(Store store) {
        super(store);
    }

    @Override
    public void run()
            throws IOException {
        int local = 1;
        Helper.go(new Item(LIMIT), State.IDLE);
    }

    enum State { IDLE, BUSY }

    interface Getter<T> {
        int MAX = 1;
        T get(String key);
    }
}

record Point(int x, int y) { }
"#,
        "
        5-28 [6-7] type Service
        8 [8] value Service/LIMIT
        9 [9] value Service/items
        9 [9] value Service/others
        11-13 [11] method Service/Service
        15-20 [15-17] method Service/run
        22 [22] type Service/State
        22 [22] value Service/State/IDLE
        22 [22] value Service/State/BUSY
        24-27 [24] interface Service/Getter
        25 [25] value Service/Getter/MAX
        26 [26] method Service/Getter/get
        30 [30] type Point
        uses Base Component Helper IDLE IOException Item*2 List*2 Override Runnable State Store String go
        ",
    );
}
