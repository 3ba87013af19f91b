// kv: JSON values under keys of the tenant; `own` is for keys of this schedule alone.

interface Own {
  own?: boolean;
}

interface Kv {
  get(key: string, options?: Own): Promise<any>;
  set(key: string, value: any, options?: Own & { ttlSeconds?: number }): Promise<null>;
  /**
   * Compare and set: keeps `value` when the key holds `expected` (null: when it holds nothing), and says whether it did. A value of null
   * removes the key. Of several runs that swap the same value one succeeds; the others are run again and see what it left.
   */
  swap(key: string, expected: any, value: any, options?: Own & { ttlSeconds?: number }): Promise<boolean>;
  delete(key: string, options?: Own): Promise<null>;
  /** Adds to the number under a key (0 when there is none), whatever it is when the run is committed. */
  add(key: string, amount?: number, options?: Own): Promise<number>;
  list(options?: Own & { prefix?: string; after?: string; limit?: number }): Promise<{ key: string; value: any }[]>;
}

declare const kv: Kv;
