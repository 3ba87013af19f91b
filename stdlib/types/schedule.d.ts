// schedule: later one-off runs of this script, or of another script of the tenant; requested when the run has succeeded, by a failed run never.

interface LaterRun {
  /** Name of the script; this script if left out. Another one needs the grant run:NAME. */
  script?: string;
  /** JSON of at most 16 KiB, `action.input` of the later run. Instants and dates become text. */
  input?: any;
  /** At most 120 characters. A new run with the key of a waiting run of the same script replaces it. */
  key?: string;
}

interface Schedule {
  /** A run at an instant, at most 366 days ahead; at the earliest a second after now. Returns the id of its action. */
  runAt(at: Instant | Temporal.Instant | Temporal.ZonedDateTime | Date | string, run?: LaterRun): Promise<string>;
  /** A run after a delay: `{ minutes: 5 }`, "90s", "PT5M", or milliseconds. Days and longer go by the calendar in an object. */
  runIn(delay: Amount | string | number, run?: LaterRun): Promise<string>;
  /** Cancels the waiting run with this id or key; one that has started, or none, stays as it is. */
  cancel(run: string, options?: { script?: string }): Promise<null>;
}

declare const schedule: Schedule;
