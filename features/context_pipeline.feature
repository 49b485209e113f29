Feature: Strategies that look together, behind circuits that count exactly
  In the report all calls of a pipeline share a count of failures and a set of disabled strategies, with no lock: counts are
  lost, strategies stay on or go off wrongly, and one that is off is never tried again. In its siblings strategies look one
  after the other, one that fails takes the findings of the others with it, and a budget of zero is none.

  @catches @unlocked
  Scenario: Failures in many questions at once are all counted
    Given a pipeline whose circuits open after 1000000 failures
    When 8 threads ask 20 questions each, in which "moody" fails, all at once
    Then 160 failures of "moody" are counted
    And every answer has what "steady" found, and says that "moody" failed

  @catches @unlocked
  Scenario Outline: A question in which a strategy fails, and <other> at once, never leave a torn circuit
    Given a pipeline whose circuits open after 1 failures
    When "moody" fails in a question and, before that is done, there is <other>
    Then the circuit of "moody" is not open without a counted failure

    Examples:
      | other                         |
      | a question in which it finds  |
      | a reset of its circuit        |
      | a reset of all circuits       |

  @catches @unlocked
  Scenario: After the cooldown one of 16 questions at once tries the strategy again, and its success closes the circuit
    Given a pipeline whose circuits open after 3 failures
    And 3 questions in which "moody" failed
    When a question is asked
    Then "moody" was not asked, and every answer says so
    And every answer has what "steady" found
    When the cooldown has passed
    And 16 threads ask at once, and "moody" is held until all others have their answers
    Then "moody" was asked in 1 of these questions
    And every answer has what "steady" found
    And the circuit of "moody" is closed

  Scenario: A probe that fails opens the circuit again
    Given a pipeline whose circuits open after 3 failures
    And 3 questions in which "moody" failed
    When the cooldown has passed
    And a question is asked in which "moody" fails
    And a question is asked
    Then "moody" was not asked, and every answer says so

  @catches @unlocked
  Scenario: A success from before the circuit opened does not close it
    Given a pipeline whose circuits open after 3 failures
    And a question in which "moody" is held
    When 3 questions are asked in which "moody" fails
    And "moody" is let go, and finds something
    Then the answer has what "moody" found
    And the circuit of "moody" is open

  @catches @silent
  Scenario Outline: A strategy that <does> costs neither the answer nor the next question
    Given a pipeline whose circuits open after 3 failures
    When 3 questions are asked in which "moody" <does>
    Then every answer has what "steady" found, and says that "moody" <is reported>
    And 3 failures of "moody" are counted
    When a question is asked
    Then "moody" was not asked, and every answer says so
    And every answer has what "steady" found
    And no task and no worker is left behind

    Examples:
      | does              | is reported |
      | fails             | failed      |
      | hangs             | timed out   |
      | hangs on a thread | timed out   |
      | panics            | failed      |
      | finds rubbish     | failed      |
      | finds too much    | failed      |

  @catches @silent
  Scenario: What has nothing to say here is named, and is no failure
    Given a pipeline whose circuits open after 3 failures
    When 9 questions are asked in which "moody" has nothing to say
    Then every answer has what "steady" found, and says that "moody" does not apply
    And 0 failures of "moody" are counted

  @catches @one-by-one
  Scenario: All strategies look at the same time
    Given a pipeline whose strategies find something once all of them look
    When a question is asked
    Then every strategy of the answer has found something

  Scenario: 16 questions with strategies that hang use no more workers than there are
    Given a pipeline whose circuits open after 1000000 failures
    When 16 threads ask 1 questions each, in which "moody" hangs on a thread, all at once
    Then "moody" never hung more than 4 times at once
    And 16 failures of "moody" are counted
    And no task and no worker is left behind

  Scenario: Pipelines that share a breaker share what it knows
    Given a pipeline whose circuits open after 3 failures
    And another one with the same breaker
    And 3 questions in which "moody" failed
    When a question is asked of the other pipeline
    Then "moody" was not asked, and every answer says so

  Scenario: A budget of zero asks nobody
    Given a pipeline whose circuits open after 3 failures
    When 9 questions are asked in which "moody" fails, with a budget of 0
    Then every answer is empty, and says that all strategies were left out
    And 0 failures of "moody" are counted

  Scenario: No answer has more tokens than its budget, whoever else asks
    Given a pipeline whose circuits open after 3 failures
    When 16 threads ask at once, with budgets from 0 to 600
    Then no answer has more tokens than its budget
    And some answer is as full as its budget allows
