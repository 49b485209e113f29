Feature: A writer cannot overwrite what it has not seen
  In the report a reader decides that a session's stream is stale, lets go of its lock, and writes. A turn that was
  started in between loses its stream. With the repair that the report proposes the turn is still lost, because the
  decision and the write look at different moments. A commit that names the version it saw closes the gap.

  @catches
  Scenario Outline: A clear that was decided before a new turn started does not wipe that turn
    Given a log on <engine> with a session whose turn looks stale
    And a reader that has decided to clear it and is held before its write
    When another process starts a new turn
    And the reader goes on with its write
    Then the session points at the new turn
    And the reader has learnt of the new turn

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches
  Scenario Outline: A stale copy of a session is never saved over the whole
    Given a log on <engine> with a session of 3 messages
    And a reader that holds a copy of it
    When another process adds 1000 messages
    And the reader saves its copy with one more message
    Then the session has 1003 messages

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  Scenario Outline: A clear of what is still there takes effect
    Given a log on <engine> with a session whose turn looks stale
    And a reader that has decided to clear it and is held before its write
    When the reader goes on with its write
    Then the session points at no turn

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |
