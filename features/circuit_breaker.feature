Feature: A circuit breaker that counts exactly and tries again
  In the report the count of failures and the set of disabled strategies are shared by all pipeline calls with no
  lock. Counts are lost, strategies stay on or go off wrongly, and one that is off is never tried again.

  @catches
  Scenario: Failures reported by many threads at once are all counted
    Given a breaker that opens after 1000000 failures
    When 8 threads report 500 failures each, all at once
    Then 4000 failures are counted

  @catches
  Scenario Outline: A failure and a <other> at once never leave a torn state
    Given a breaker that opens after 1 failures
    When a failure is reported and, before it is done, a <other>
    Then the breaker is not open without a counted failure

    Examples:
      | other        |
      | success      |
      | reset        |
      | reset of all |

  Scenario: After the cooldown one of 64 callers probes, and its success closes the circuit
    Given a breaker that opens after 3 failures
    And 3 failures were reported
    When the cooldown has passed
    And 64 callers ask at once
    Then 1 of them is let through
    When the probe succeeds
    Then the circuit is closed

  Scenario: A probe that fails opens the circuit again
    Given a breaker that opens after 3 failures
    And 3 failures were reported
    When the cooldown has passed
    And 64 callers ask at once
    And the probe fails
    Then the circuit is open

  Scenario: A probe that never reports is given up after its lease
    Given a breaker that opens after 3 failures
    And 3 failures were reported
    When the cooldown has passed
    And 64 callers ask at once
    And the lease of the probe has passed
    And 64 callers ask at once
    Then 1 of them is let through

  Scenario Outline: A late success changes nothing after <event>
    Given a breaker that opens after 3 failures
    And a call that was let through
    When <event> happens
    And the call reports a success
    Then the circuit is as it was before that report

    Examples:
      | event      |
      | an opening |
      | a reset    |
      | a probe    |

  Scenario: Reset brings a disabled strategy back at once
    Given a breaker that opens after 3 failures
    And 3 failures were reported
    When the circuit is reset
    Then the circuit is closed
