Feature: A language server never disappears under its callers
  In the report a restart takes the entry of a server out of the registry, does seconds of work, and puts a new one in.
  In between callers are told that there is no such server, and whoever starts it then has a second process. Here the
  entry stays, in a state that says what is going on, and callers wait for it or do not, as they wish.

  @catches
  Scenario Outline: A health check during a restart answers at once and says so
    Given a server over <transport>
    And servers hang at initialize
    When somebody begins a restart
    Then a health check says restarting with generation 2 at once
    When the server answers initialize
    Then every restart has led to generation 2
    And a health check says ready with generation 2 at once

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  @catches
  Scenario Outline: A client that comes during a restart waits or is told, as it asked
    Given a server over <transport>
    And servers hang at initialize
    When somebody begins a restart
    And a client asks for the server and does not want to wait
    Then the client is told that the server is restarting
    When 3 clients ask for the server and wait
    And the server answers initialize
    Then all 3 clients have generation 2

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  @catches
  Scenario Outline: Concurrent restarts are one restart
    Given a server over <transport>
    And servers hang at initialize
    When somebody begins a restart
    And 4 others begin a restart
    And the server answers initialize
    Then every restart has led to generation 2
    And 2 processes were launched and 1 is alive

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  @catches
  Scenario Outline: A start during a restart joins it
    Given a server over <transport>
    And servers hang at initialize
    When somebody begins a restart
    And 2 others begin a start
    And the server answers initialize
    Then every restart has led to generation 2
    And every start has led to generation 2
    And 2 processes were launched and 1 is alive

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  @catches
  Scenario Outline: Concurrent first starts make one process
    Given no server yet over <transport>
    And servers hang at initialize
    When 5 others begin a start
    And the server answers initialize
    Then every start has led to generation 1
    And 1 processes were launched and 1 is alive

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  @catches
  Scenario Outline: A restart that fails wakes everybody with its reason
    Given a server over <transport>
    And servers hang at initialize
    When somebody begins a restart
    And 2 others begin a start
    And 3 clients ask for the server and wait
    And the server fails at initialize
    Then everybody is told why
    And a health check says failed with generation 2 at once
    And 2 processes were launched and 0 are alive

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  @catches
  Scenario Outline: Leases that are taken and returned during a restart are kept
    Given a server over <transport>
    And a client that uses it
    And servers hang at initialize
    When somebody begins a restart
    And 2 clients ask for the server and wait
    And the first client goes
    Then 2 leases are counted
    When the server answers initialize
    Then all 2 clients have generation 2
    And 2 leases are counted
    When all clients go
    Then 0 leases are counted

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  @catches
  Scenario Outline: A client of before the restart is led to the new process
    Given a server over <transport>
    And a client that uses it
    When somebody begins a restart
    Then every restart has led to generation 2
    And the first client is led to generation 2

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  @catches
  Scenario Outline: A stop during a restart wins and takes the new process along
    Given a server over <transport>
    And servers hang at initialize
    When somebody begins a restart
    And 2 clients ask for the server and wait
    And somebody stops the server
    Then the stop is done
    And everybody is told that the server is stopped
    And 2 processes were launched and 0 are alive
    And a client that comes now is told that the server is stopped

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  @catches
  Scenario Outline: A start after a stop that was asked for during a restart brings up one process
    Given a server over <transport>
    And servers hang at initialize
    When somebody begins a restart
    And somebody stops the server
    And servers answer initialize again
    And somebody starts the server
    Then the stop is done
    And every start has led to generation 3
    And 3 processes were launched and 1 is alive

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  @catches
  Scenario Outline: A dead server that clients hold is replaced
    Given a server over <transport>
    And a client that uses it
    When the server dies
    And 1 clients ask for the server and wait
    Then all 1 clients have generation 2
    And the first client is led to generation 2
    And 2 leases are counted
    And 2 processes were launched and 1 is alive

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  Scenario Outline: A server that exits at once is reported with its exit code and last words
    Given no server yet over <transport>
    And servers hang at initialize
    When 1 others begin a start
    And the server fails at initialize
    Then everybody is told why
    And 1 processes were launched and 0 are alive

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  Scenario Outline: A slow initialize of one server does not delay the clients of another
    Given a server over <transport>
    And servers hang at initialize
    When somebody starts another server
    And 2 clients ask for the server and wait
    Then all 2 clients have generation 1

    Examples:
      | transport    |
      | in-memory    |
      | real process |

  # The servers of this one hang at their stop for as long as they like, which a real process cannot.
  @catches
  Scenario: To stop many servers that hang takes one deadline
    Given 5 servers in memory that hang at their stop
    When all servers are stopped with 5 seconds for each
    And 5 seconds pass
    Then the stop of all is over
