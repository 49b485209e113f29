Feature: A prompt that was accepted runs once, and its stream is there for everybody
  In the report a reader decides under one lock that a session's stream is stale, and writes that after it has let go of
  the lock. A turn that was started in between loses its stream. The repair that the report proposes looks again under the
  lock of the session, and the turn is still lost every time: the session names a stream before there is one, and whoever
  looks in between finds a name without a stream. It was cured in the end by a clock, at the price of a session that
  refuses prompts for half a minute after a crash. Here a session and its turn's stream change in one commit that names
  what it saw, and stale means that the owner is gone.

  @catches @decide-then-write
  Scenario Outline: A clear that is held at any point does not take the turn that starts meanwhile
    Given sessions on <engine>
    When a reader clears a turn that was left behind, and is held at every point while the next turn starts
    Then every turn that was started is the active one of its session
    And whoever attaches to it hears what it says

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @decide-then-write @look-again
  Scenario Outline: A start that is held at any point keeps its stream, whoever clears meanwhile
    Given sessions on <engine>
    When a turn starts, and is held at every point while a reader looks and clears
    Then every turn that was started is the active one of its session
    And whoever attaches to it hears what it says

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @look-again
  Scenario Outline: Of 40 starts with a reader that never stops looking, none loses its stream
    Given sessions on <engine>
    When 40 turns start while a reader looks and clears at every point
    Then every turn that was started is the active one of its session
    And whoever attaches to it hears what it says

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @check-then-start
  Scenario Outline: Of two starts at once one wins, and the other is told of it
    Given sessions on <engine>
    When a turn starts, and is held at every point while another one starts
    Then one of both was refused every time, and was told of the other
    And every turn that was started is the active one of its session

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @check-then-start
  Scenario Outline: The same start sent twice is one turn
    Given sessions on <engine>
    When a turn starts with a key, and is held at every point while it is sent again
    Then both are the same turn every time
    And every session has 1 turns

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @partial-save
  Scenario Outline: A session that is renamed from what a list shows of it keeps its turns
    Given sessions on <engine>
    And a session with 3 turns
    When somebody renames it
    Then it has its new title and 3 turns

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @decide-then-write
  Scenario Outline: A copy of a session that has grown old is not saved over a turn
    Given sessions on <engine>
    When somebody renames a session, and is held at every point while a turn starts
    Then every turn that was started is the active one of its session
    And every session has 1 turns and its new title

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @stop-keeps-the-claim
  Scenario Outline: A turn that was stopped frees its session for the next prompt
    Given sessions on <engine>
    And a turn that runs
    When somebody stops it
    And its agent lets go
    Then its readers hear that it was "cancelled"
    And the next prompt starts a turn

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @stop-frees-at-once
  Scenario Outline: The next turn does not begin while the one that was stopped still unwinds
    Given sessions on <engine>
    And a turn that runs
    When somebody stops it
    And the next prompt is sent
    Then only the first agent is at work
    When its agent lets go
    Then only the second agent is at work

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @thirty-seconds
  Scenario Outline: A turn that outlived its daemon does not hold up the next prompt, not for a second
    Given sessions on <engine>
    And a turn that runs
    When the daemon is killed and the next one starts
    Then the next prompt starts a turn

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @no-end
  Scenario Outline: The readers of a turn whose daemon was killed hear all of it, and that it was interrupted
    Given sessions on <engine>
    And a turn that runs
    And a reader of it
    When its agent says "half a word"
    And the daemon is killed and the next one starts
    Then the reader hears "half a word"
    And the reader hears that it was "interrupted"
    And what the dead daemon says is heard by nobody

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @drop-when-full
  Scenario Outline: A reader that falls behind hears everything later
    Given sessions on <engine>
    And a turn that runs
    And a reader of it
    When its agent says 500 words and comes to its end while the reader pauses
    Then the reader hears all 500 words in their order
    And the reader hears that it was "done"

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @postgres @two-daemons
  Scenario: A turn of one daemon is never cleared by another one that shares the log, as long as its owner lives
    Given two daemons on one Postgres
    When a turn starts, and is held at every point while a reader of the other daemon looks and clears
    Then every turn that was started is the active one of its session
    And whoever attaches to it hears what it says

  @postgres @two-daemons
  Scenario: Of two starts at once on two daemons one wins, and the other is told of it
    Given two daemons on one Postgres
    When a turn starts, and is held at every point while another one starts on the other daemon
    Then one of both was refused every time, and was told of the other
    And every turn that was started is the active one of its session

  @postgres @two-daemons
  Scenario: A daemon that has just started is alive to others from its first turn on
    Given two daemons on one Postgres
    When 20 daemons start, and another one looks and clears as soon as each has begun a turn
    Then every turn that was started is the active one of its session

  @postgres @two-daemons
  Scenario: A daemon that was killed and started again is alive to others all the time
    Given two daemons on one Postgres
    When a daemon is killed and starts again, and another one looks and clears until the lease of before is long over
    Then every turn that was started is the active one of its session
    And whoever attaches to it hears what it says
