// action: what this run is, and why now.

interface Action {
  readonly id: string;
  readonly scheduleId: string | null;
  /** The instant that the schedule names; null for a run without one. */
  readonly slot: Instant | null;
  /** The slot on the schedule's clock, like 2026-11-21T09:00:00. */
  readonly localTime: string;
  readonly timezone: string;
  readonly previousSlot: Instant | null;
  readonly upcoming: Instant[];
  /** 1 for the first try, of this step when there are several. */
  readonly attempt: number;
  /** What the last run that succeeded returned. */
  readonly lastResult: any;
  /** When the last run that succeeded was to start, when it did, and on which node; null before the first. */
  readonly lastRun: { readonly slot: Instant; readonly startedAt: Instant; readonly node: string | null } | null;
  /** The schedule's or the request's parameters; in a later step what the step before returned. */
  readonly input: any;
}

declare const action: Action;

/** What a script's default export is called with. */
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
}
