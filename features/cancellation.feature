Feature: A cancellation belongs to the run it was meant for
  A token is cancelled to stop one run, and reset for the next. In the report the reset clears the flag with
  nothing to stop it from undoing a cancel that others have not acted on yet. The suggested lock around the
  clear does not close the gap.

  @catches
  Scenario: A worker that was cancelled stays cancelled when the token is reset beneath it
    Given a token and a worker in its first run
    And the worker is held after it was woken and before it looks
    When the token is cancelled
    And the token is reset
    And the worker goes on
    Then the worker sees that it was cancelled

  @catches
  Scenario: A late reset does not take back the cancellation of the next run
    Given a token whose first run was cancelled
    And an owner of the first run that is held just before its reset
    When the token is reset
    And a second run starts
    And the token is cancelled
    And the owner of the first run goes on with its reset
    Then the second run is cancelled

  Scenario: A reset never swallows a cancel that comes after it
    Given a token whose first run was cancelled
    When a reset and then a cancel are forced by a barrier on two threads
    Then a run that starts now is cancelled

  Scenario: A cancel that came before a reset does not stop the next run
    Given a token whose first run was cancelled
    When a cancel and then a reset are forced by a barrier on two threads
    Then a run that starts now is live

  Scenario: Cancelling before the work starts counts
    Given a token
    When the token is cancelled
    Then a run that starts now is cancelled

  Scenario: Every waiter is woken and sees the cancel
    Given a token and 16 workers that wait for its cancellation
    When the token is cancelled
    Then all 16 workers see that they were cancelled
