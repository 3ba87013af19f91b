// action: the run: its schedule, slot, attempt and input.

interface Action {
  readonly id: string;
  readonly scheduleId: string | null;
  /** The slot: the instant of the schedule that this run is for; null for a run without a slot. */
  readonly slot: Instant | null;
  /** The slot as local time of the schedule's time zone, such as 2026-11-21T09:00:00. */
  readonly localTime: string;
  readonly timezone: string;
  readonly previousSlot: Instant | null;
  readonly upcoming: Instant[];
  /** Number of the attempt, from 1; counted for each step. */
  readonly attempt: number;
  /** Result of the last successful run. */
  readonly lastResult: any;
  /** Due time, start and node of the last successful run; null if there is none. */
  readonly lastRun: { readonly slot: Instant; readonly startedAt: Instant; readonly node: string | null } | null;
  /** Params of the schedule or the request; in a later step, the result of the previous step. */
  readonly input: any;
}

declare const action: Action;

/** Gives the function back: `export default script(async ({ db, now }) => { … })` has the types of what it is called with. */
declare function script<Result>(run: (run: Run) => Result): (run: Run) => Result;

/** Argument of a script's default export. */
interface Run {
  readonly action: Action;
  readonly now: Instant;
  readonly db: Db;
  readonly changes: typeof changes;
  readonly kv: Kv;
  readonly limits: typeof limits;
  readonly mail: MailBox;
  readonly fetch: typeof fetch;
  readonly secrets: Secrets;
  readonly events: Events;
  readonly schedule: Schedule;
}
