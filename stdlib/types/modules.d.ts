// Standard modules: import { parse } from "csv".

declare module "csv" {
  interface ParseOptions {
    /** One character; "," if left out. */
    separator?: string;
    /** Objects by the names of the first row. */
    header?: boolean;
  }
  /** Rows of a text (RFC 4180). Throws a SyntaxError that names the row. */
  export function parse(text: string, options: ParseOptions & { header: true }): Record<string, string>[];
  export function parse(text: string, options?: ParseOptions): string[][];
  interface StringifyOptions {
    separator?: string;
    /** Names of the columns of objects; those of the first object if left out. */
    columns?: string[];
    /** "text" puts an apostrophe before text that a spreadsheet would calculate. */
    formulas?: "keep" | "text";
  }
  /** Text of rows, with CRLF after each. */
  export function stringify(rows: Iterable<unknown[] | Record<string, unknown>>, options?: StringifyOptions): string;
}

declare module "decimal" {
  type Rounding = "half-even" | "half-up" | "half-down" | "up" | "down" | "ceiling" | "floor";
  type Numeric = Decimal | string | number | bigint;
  /** An exact decimal number of up to 1000 digits. Results keep all digits; only division and round take a scale. */
  export class Decimal {
    constructor(value: Numeric);
    plus(other: Numeric): Decimal;
    minus(other: Numeric): Decimal;
    times(other: Numeric): Decimal;
    dividedBy(other: Numeric, scale: number, rounding?: Rounding): Decimal;
    round(scale: number, rounding?: Rounding): Decimal;
    negated(): Decimal;
    abs(): Decimal;
    compare(other: Numeric): -1 | 0 | 1;
    equals(other: Numeric): boolean;
    /** Parts by weights that add up to the number exactly. */
    allocate(weights: Numeric[], scale?: number): Decimal[];
    toFixed(scale: number, rounding?: Rounding): string;
    toString(): string;
    toJSON(): string;
    toNumber(): number;
  }
  export function decimal(value: Numeric): Decimal;
}

declare module "html" {
  interface Html {
    toString(): string;
    toJSON(): string;
  }
  /** Template that escapes each value; arrays are joined, null, undefined and false are empty. Put attributes in quotes. */
  export function html(strings: TemplateStringsArray, ...values: unknown[]): Html;
  export function escape(value: unknown): string;
  /** HTML that is put in as it is. */
  export function raw(text: string): Html;
  /** Table of objects, with the columns of the first one or those named. */
  export function table(rows: Record<string, unknown>[], columns?: string[]): Html;
}

declare module "markdown" {
  /** Headings, paragraphs, lists, quotes, code, emphasis and links (http, https, mailto) as HTML; HTML in the text is escaped. */
  export function render(text: string): string;
}

declare module "stats" {
  export function sum(values: Iterable<number>): number;
  export function mean(values: Iterable<number>): number;
  export function median(values: Iterable<number>): number;
  /** Value below which the share `at` (0 to 1) lies. */
  export function quantile(values: Iterable<number>, at: number): number;
  export function variance(values: Iterable<number>): number;
  export function stdev(values: Iterable<number>): number;
  /** Line of least squares through points [x, y]. */
  export function linear(points: Iterable<[number, number]>): { slope: number; intercept: number; r2: number };
}
