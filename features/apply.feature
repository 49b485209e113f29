Feature: A plan is applied whole and once, and is taken back alone
  In the reports an apply flips a status and touches no file, is made twice by two who both saw the plan unapplied, writes
  files one after the other and stops half-way, or runs a merge in the checkout, where the second one finds the locks of
  the first and a conflict stays behind as a merge that nobody ends. Here an apply is one landing: everything is merged
  before anything is touched, is written down, and is carried out whole or taken back whole, also after a kill.

  Background:
    Given a workspace

  @catches @status-only
  Scenario: Applied means that the files changed
    Given a plan that changes files of every kind
    When it is applied
    Then it is said to be "applied"
    And the workspace is what its sandbox was
    And it was applied 1 times

  @catches @one-by-one @status-only
  Scenario: Two applies of one plan at once apply it once
    Given a plan that does "echo more >> b.txt"
    When it is applied twice at once
    Then 1 of the two have applied it
    And "b.txt" has "b, more"
    And it was applied 1 times

  @catches @git-merge
  Scenario Outline: Of eight applies at once to one workspace all land or are reported
    Given 8 plans, of which <clashing> change the same line of "a.txt"
    When all are applied at once
    Then <landed> of them have landed and <reported> are reported to clash in "a.txt"
    And the workspace has the work of those that have landed and nothing else

    Examples:
      | clashing | landed | reported |
      | 0        | 8      | 0        |
      | 2        | 7      | 1        |
      | 8        | 1      | 7        |

  @catches @one-by-one @status-only @git-merge
  Scenario: A conflict leaves the workspace byte-identical and names the files
    Given a plan that does "echo 1 > 1-new; sed -i s/two/TWO/ a.txt; rm c.txt; echo z > z-new"
    And somebody else has done "sed -i s/two/zwei/ a.txt; echo more >> c.txt" meanwhile
    When it is applied
    Then it clashes in "a.txt, c.txt"
    And the workspace is byte-identical to what it was
    And no merge is left half-way
    And it was applied 0 times
    When somebody else has done "sed -i s/zwei/two/ a.txt; echo c > c.txt" meanwhile
    And it is applied
    Then it is said to be "applied"
    And it was applied 1 times

  @catches @one-by-one @git-merge
  Scenario: Plans are applied together or not at all
    Given a plan that does "sed -i s/one/ONE/ a.txt; echo 1 > n1"
    And a plan that does "sed -i s/five/FIVE/ a.txt; echo 2 > n2"
    And a plan that does "sed -i s/five/five-and-a-half/ a.txt; echo 3 > n3"
    When all are applied together
    Then they clash in "a.txt"
    And the workspace is byte-identical to what it was
    And none of them is applied
    When the first 2 are applied together
    Then the first 2 of them are applied
    And "a.txt" has "ONE, two, three, four, FIVE"

  @catches @one-by-one
  Scenario: Taking one plan back leaves the later edits of others alone
    Given a plan that does "sed -i s/one/ONE/ a.txt; echo 1 > n1"
    And a plan that does "sed -i s/five/FIVE/ a.txt; echo 2 > n2"
    When each is applied in turn
    And somebody else has done "sed -i s/three/THREE/ a.txt" meanwhile
    And the first is taken back
    Then "a.txt" has "one, two, THREE, four, FIVE"
    And there is no "n1"
    And "n2" has "2"

  @catches @one-by-one
  Scenario: An edit that an undo would lose is reported, and nothing is touched
    Given a plan that does "sed -i s/one/ONE/ a.txt; echo 1 > n1"
    When each is applied in turn
    And somebody else has done "sed -i s/ONE/UNO/ a.txt" meanwhile
    And the first is taken back
    Then it clashes in "a.txt"
    And the workspace is byte-identical to what it was

  Scenario: An undo is undone
    Given a plan that changes files of every kind
    When it is applied
    And the first is taken back
    Then it is said to be "undone"
    And the workspace is what it was at first
    When it is applied
    Then it is said to be "applied"
    And the workspace is what its sandbox was
    When the first is taken back
    Then the workspace is what it was at first
    And it was applied 2 times

  @killed @catches @one-by-one
  Scenario Outline: Killed at every step, <what> is done or is not done, and the log agrees
    Given <plans>
    When <what> is killed at every step
    Then the workspace was all old or all new each time, and the log said so
    And both have been found

    Examples:
      | what                | plans                                                  |
      | an apply            | a plan that changes files of every kind                |
      | an undo             | a plan that changes files of every kind, and is applied |
      | an apply of several | 3 plans, of which 0 change the same line of "a.txt"     |
