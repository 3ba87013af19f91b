// Instant: a moment to the microsecond, with the calendar of the schedule's time zone.

/** How far to move. Days and longer go by the local clock. */
interface Amount {
  years?: number;
  months?: number;
  weeks?: number;
  days?: number;
  hours?: number;
  minutes?: number;
  seconds?: number;
  milliseconds?: number;
}

declare class Instant {
  /** Of an Instant, a Date, ISO text with its offset, or milliseconds since 1970. */
  static from(value: Instant | Date | string | number): Instant;
  readonly epochMilliseconds: number;
  readonly epochMicroseconds: bigint;
  readonly timezone: string;
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  readonly day: number;
  readonly hour: number;
  readonly minute: number;
  readonly second: number;
  /** 1 Monday to 7 Sunday. */
  readonly weekday: number;
  plus(amount: Amount): Instant;
  minus(amount: Amount): Instant;
  /** Where the part began that this instant lies in, by local time; weeks begin on Monday. */
  startOf(part: "year" | "month" | "week" | "day" | "hour" | "minute" | "second"): Instant;
  /** Milliseconds from another instant to this one. */
  since(other: Instant | Date | string): number;
  equals(other: Instant | Date | string): boolean;
  toDate(): Date;
  /** UTC, as short as it is exact. */
  toISO(): string;
  /** UTC, milliseconds always, microseconds when there are any. */
  toISOString(): string;
  /** Local date and time, without an offset. */
  toLocal(): string;
  /** Local date. */
  toISODate(): string;
  toJSON(): string;
  /** Milliseconds since 1970: instants compare with < and subtract with -. */
  valueOf(): number;
}

/** The instant at which this run began. */
declare const now: Instant;
