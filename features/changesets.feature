Feature: Every change is in the changeset of the actor that made it
  In the report the changesets of a plan are a plain list: to start one appends to it, and to record takes the last one.
  Whatever another actor starts in between takes the change, and with none there it crashes. The suggested repair puts a
  lock around the list alone: a changeset is started before the lock is taken, and a change is recorded after it was
  released. Here a changeset is started and current in one commit, and a change is recorded by the commit that finds its
  changeset open.

  Background:
    Given a plan

  @catches @list-and-last @lock-around-the-list
  Scenario Outline: A changeset that is started between another actor's start and record takes nothing of it
    Given ann has started a changeset
    And bob has started a changeset
    When ann records a change through her <what>
    Then it is recorded
    And ann's changeset has 1 changes
    And bob's changeset has 0 changes

    Examples:
      | what    |
      | handle  |
      | context |

  @catches @list-and-last
  Scenario: Recording with no active changeset is refused, and nothing crashes
    When ann records a change through her context
    Then it is refused, because there is no active changeset
    And the plan has 0 changes

  @catches @list-and-last @lock-around-the-list
  Scenario: What others have open is nobody else's active changeset
    Given bob has started a changeset
    When ann records a change through her context
    Then it is refused, because there is no active changeset
    And bob's changeset has 0 changes

  @catches @list-and-last @lock-around-the-list
  Scenario Outline: A changeset that is closed between look-up and record takes nothing more
    Given ann has started a changeset
    And ann's next record has found it and is held
    When another process closes it
    And the record goes on through her <what>
    Then it is refused, because <why>
    And ann's changeset has 0 changes

    Examples:
      | what    | why                          |
      | handle  | the changeset is closed      |
      | context | there is no active changeset |

  @catches @list-and-last @lock-around-the-list
  Scenario: A record that was held goes to the changeset that is current when it is made
    Given ann has started a changeset
    And ann's next record has found it and is held
    When another process closes it
    And another process starts one for ann
    And the record goes on through her context
    Then it is recorded
    And ann's changeset has 1 changes
    And the plan has 1 changes

  @catches @lock-around-the-list
  Scenario: A changeset is current as soon as anybody can see it
    Given ann has started a changeset
    When ann starts another one, and it has just come to be seen
    And ann records a change through her context
    Then it is recorded
    And ann's changeset has 1 changes

  @catches @list-and-last @lock-around-the-list
  Scenario: A changeset that another process has started is found by one that was at work before
    Given bob has started a changeset
    When another process starts one for ann
    And ann records a change through her context
    Then it is recorded
    And ann's changeset has 1 changes
    And bob's changeset has 0 changes

  @catches @list-and-last @lock-around-the-list
  Scenario Outline: Many actors at once, and every change is in its place
    When <actors> actors in two processes record <changes> changes each at once
    Then every changeset has the <changes> changes of its actor and no other
    And the plan has <all> changes
    And every change has a number of its own
    And the changes of every path are in the order in which they were made

    Examples:
      | actors | changes | all |
      | 4      | 50      | 200 |
      | 8      | 25      | 200 |
      | 24     | 4       | 96  |

  @catches @list-and-last @lock-around-the-list
  Scenario: A changeset that is closed takes nothing more
    Given ann has started a changeset
    When ann records a change through her handle
    And it is closed
    And ann records a change through her handle
    Then it is refused, because the changeset is closed
    And ann's changeset has 1 changes

  Scenario Outline: A plan that is <done> has no open changesets
    Given ann has started a changeset
    When ann records a change through her handle
    And the plan is <done>
    And ann records a change through her <what>
    Then it is refused, because <why>
    And ann's changeset has 1 changes
    And the plan keeps 0 changesets open

    Examples:
      | done    | what    | why                          |
      | sealed  | handle  | the changeset is closed      |
      | sealed  | context | there is no active changeset |
      | applied | handle  | the changeset is closed      |
      | applied | context | there is no active changeset |

  @catches @list-and-last @lock-around-the-list
  Scenario Outline: A changeset is found <where>
    Given ann has started a changeset
    And bob has started a changeset
    When ann records a change through her handle
    And the work goes on <where>
    And ann records a change through her context
    Then it is recorded
    And ann's changeset has 2 changes
    And bob's changeset has 0 changes

    Examples:
      | where                              |
      | in another process                 |
      | after the daemon was started again |

  @catches @list-and-last @lock-around-the-list
  Scenario: Finished changesets are let go, and can be found
    When ann starts 40 changesets and finishes each
    Then the plan keeps 0 changesets open
    And another process finds 40 changesets of ann

  Scenario: Executing again after a failure works
    When a command of ann writes "half" and fails
    Then ann's changesets have "1" changes
    When a command of ann writes "whole" and succeeds
    Then ann's changesets have "1, 1" changes
    And the plan keeps 0 changesets open
    When the plan is applied
    Then the workspace has "whole"
