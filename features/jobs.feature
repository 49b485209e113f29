Feature: A job is claimed once, cancelled for sure, and never stuck
  In the reports two workers poll, both see a job queued, and both mark it as theirs; a heartbeat writes back the
  whole row that it read before, and with it the state from before a cancellation; and a job whose worker was
  killed is said to run for ever. Whoever cures the last one by putting everything back that is said to run takes
  jobs from workers that live, and lets late ones overwrite what has happened since. Here every write names the version
  that it saw, a worker lives as long as its lease, and a heartbeat does not touch the job.

  @catches @poll-then-mark
  Scenario Outline: Two workers that have seen the same job queued run it once
    Given a job on <engine> that two daemons have seen queued
    When both go for it
    And whoever runs it is done
    Then it was run 1 times
    And it has succeeded
    And its history is "submitted, claimed, succeeded"

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @poll-then-mark
  Scenario Outline: A queued job that is cancelled is cancelled at once, also for a worker that has seen it queued
    Given a job on <engine> that two daemons have seen queued
    When somebody cancels it
    Then it is cancelled
    When both go for it
    Then it was run 0 times
    And it is cancelled
    And its history is "submitted, cancel_requested, cancelled"

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @whole-row-heartbeat
  Scenario Outline: A heartbeat does not undo a cancellation
    Given a job on <engine> that runs
    And its worker is about to write a heartbeat
    When somebody cancels it
    And the heartbeat is written
    Then the wish to cancel it stands
    When its handler does as it is told
    Then it is cancelled
    And its history is "submitted, claimed, cancel_requested, cancelled"

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @whole-row-heartbeat
  Scenario Outline: A heartbeat does not bring a job back that has ended
    Given a job on <engine> that runs
    And its worker is about to write a heartbeat
    When its handler succeeds
    And it has come to its end
    And the heartbeat is written
    Then it has succeeded
    And its history is "submitted, claimed, succeeded"

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  Scenario Outline: The job of a killed worker does not stay running
    Given a job on <engine> that runs and <if interrupted>
    And another daemon beside it
    When the first daemon is killed
    And its lease is over
    Then it comes to be <state>
    And its history begins with "submitted, claimed, interrupted"

    Examples:
      | engine | if interrupted       | state   |
      | SQLite | may be repeated      | running |
      | SQLite | must not be repeated | failed  |

    @postgres
    Examples:
      | engine   | if interrupted       | state   |
      | Postgres | may be repeated      | running |
      | Postgres | must not be repeated | failed  |

  Scenario Outline: The next daemon of a home puts the jobs of a killed one right before it serves
    Given a job on <engine> that runs and must not be repeated
    When the first daemon is killed
    And the next daemon of its home has started
    Then it has failed
    And its history is "submitted, claimed, interrupted, failed"

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @unfenced-reset
  Scenario Outline: A daemon that starts takes nothing from one that lives
    Given a job on <engine> that runs and may be repeated
    When another daemon starts
    Then it runs as attempt 1
    When its handler succeeds
    And it has come to its end
    Then it was run 1 times
    And its history is "submitted, claimed, succeeded"

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @unfenced-reset
  Scenario Outline: The late result of a worker that stalled and was given up is refused
    Given a job on <engine> that stalls its worker
    And another daemon beside it
    When its lease is over
    And the other daemon has taken it over
    And the first handler is done after all
    Then the first daemon is refused
    And it runs as attempt 2
    When the second handler is done
    And it has come to its end
    Then it has succeeded on the other daemon
    And its history is "submitted, claimed, interrupted, claimed, succeeded"

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @unfenced-reset
  Scenario Outline: A worker that was given up is told to stop, and is refused if it does not
    Given a job on <engine> that runs and may be repeated
    And another daemon beside it
    When its lease is over
    Then the first handler is told to stop
    When the other daemon has taken it over
    And the first handler is done after all
    Then the first daemon is refused
    And it runs as attempt 2
    When the second handler is done
    And it has come to its end
    Then it has succeeded on the other daemon
    And its history is "submitted, claimed, interrupted, claimed, succeeded"

    Examples:
      | engine |
      | SQLite |

    @postgres
    Examples:
      | engine   |
      | Postgres |

  @catches @unfenced-reset
  Scenario Outline: A cancellation between the end of the work and its commit is seen
    Given a job on <engine> that runs
    When another process writes a wish to cancel it
    And its handler <ends>
    And it has come to its end
    Then the wish to cancel it stands
    And its history is "submitted, claimed, cancel_requested, <state>"

    Examples:
      | engine | ends     | state     |
      | SQLite | succeeds | succeeded |
      | SQLite | fails    | cancelled |

    @postgres
    Examples:
      | engine   | ends     | state     |
      | Postgres | succeeds | succeeded |
      | Postgres | fails    | cancelled |

  Scenario Outline: A cancellation and a time-out give one end
    Given a job on <engine> that runs for at most 3 seconds
    When <first>
    And <second>
    And its handler does as it is told
    Then it is cancelled
    And its history is "submitted, claimed, cancel_requested, cancelled"

    Examples:
      | engine | first               | second              |
      | SQLite | somebody cancels it | its time is over    |
      | SQLite | its time is over    | somebody cancels it |

    @postgres
    Examples:
      | engine   | first               | second              |
      | Postgres | somebody cancels it | its time is over    |
      | Postgres | its time is over    | somebody cancels it |

  Scenario Outline: A job that always fails is tried exactly as often as it may be
    Given a job on <engine> that fails and may be tried <retries> times more
    When all its pauses are over
    Then it has failed
    And it was run <runs> times

    Examples:
      | engine | retries | runs |
      | SQLite | 0       | 1    |
      | SQLite | 2       | 3    |

    @postgres
    Examples:
      | engine   | retries | runs |
      | Postgres | 0       | 1    |
      | Postgres | 2       | 3    |

  Scenario Outline: A daemon that ends waits for what is done in time and gives the rest back
    Given a job on <engine> that runs and may be repeated
    When the first daemon begins to drain
    And its handler <does>
    And the time to drain is over
    Then the drain comes to its end
    And its history is "submitted, claimed, <last>"

    Examples:
      | engine | does               | last        |
      | SQLite | succeeds           | succeeded   |
      | SQLite | waits for its stop | interrupted |

    @postgres
    Examples:
      | engine   | does               | last        |
      | Postgres | succeeds           | succeeded   |
      | Postgres | waits for its stop | interrupted |
