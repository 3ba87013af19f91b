// Instant: an instant in microseconds, with the calendar of the schedule's time zone.

/** A length of time; a Temporal.Duration is one. Days and longer units are counted in local time. */
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
  /** Converts an Instant, a Temporal.Instant or ZonedDateTime, a Date, ISO 8601 text with an offset, or milliseconds since 1970. */
  static from(value: Instant | Temporal.Instant | Temporal.ZonedDateTime | Date | string | number): Instant;
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
  /** 1 (Monday) to 7 (Sunday). */
  readonly weekday: number;
  plus(amount: Amount): Instant;
  minus(amount: Amount): Instant;
  /** Start of the unit that contains this instant, in local time; weeks begin on Monday. */
  startOf(part: "year" | "month" | "week" | "day" | "hour" | "minute" | "second"): Instant;
  /** Milliseconds from the other instant to this one. */
  since(other: Instant | Date | string): number;
  equals(other: Instant | Date | string): boolean;
  toDate(): Date;
  toTemporalInstant(): Temporal.Instant;
  /** UTC, without trailing zeros. */
  toISO(): string;
  /** UTC, with milliseconds, and with microseconds if they are not zero. */
  toISOString(): string;
  /** Local date and time, without an offset. */
  toLocal(): string;
  /** Local date. */
  toISODate(): string;
  toJSON(): string;
  /** Milliseconds since 1970: instants compare with < and subtract with -. */
  valueOf(): number;
}

/** Instant at which this run started. */
declare const now: Instant;
