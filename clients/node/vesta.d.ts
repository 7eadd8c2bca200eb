/** Options of a client. Times are in milliseconds. */
export interface Options {
  /** One or more servers: `http://HOST:PORT` or `https://HOST:PORT`, in order of preference. */
  servers: string | readonly string[];
  /** The bearer token; default none. */
  token?: string;
  /** Most IDs in memory, 1 to 1,048,576; default 10,000. */
  batch?: number;
  /** Longest wait of a call, 1 to 3,600,000; default 2,000. */
  maxWait?: number;
  /** Age at which IDs in memory are dropped, at least 1; default 60,000. `Infinity` keeps them. */
  maxAge?: number;
  /** More headers of a request, such as `traceparent`; called in the async context of the call that sends it. */
  headers?: () => Record<string, string>;
  /** Sends the token without encryption to other hosts too; default false. */
  allowPlaintext?: boolean;
}

/** Parts of an ID to assemble. Those left out have the server's own values. */
export interface Parts {
  time: bigint | number;
  seq: bigint | number;
  machine?: bigint | number;
  genMethod?: bigint | number;
  type?: bigint | number;
  version?: bigint | number;
}

/** The fields of an ID, its layout, and the moment at which its tick begins. */
export interface Explained {
  id: bigint;
  layout: string;
  moment: Date;
  time: bigint;
  seq: bigint;
  machine: bigint;
  genMethod: bigint;
  type: bigint;
  version: bigint;
}

/** A failed call. */
export class VestaError extends Error {
  /** The server's name for the error; `UNAVAILABLE` without an answer, `DEADLINE_EXCEEDED` after a time-out, `SEALED`
   * after `close()`, empty if a proxy answered. */
  readonly kind: string;
  /** The HTTP status; undefined without an answer. */
  readonly status: number | undefined;
  /** The server that failed last. */
  readonly server: string | undefined;
  /** Whether a later call may succeed. */
  readonly retry: boolean;
  /** Milliseconds until then, if a server named a time; else 0. */
  readonly retryAfter: number;
}

/** Takes IDs ahead from the first server that answers. Its calls reject with {@link VestaError}. */
export class VestaClient {
  /** Nothing is sent before the first call. Throws a `TypeError` or `RangeError` that names the wrong option. */
  constructor(options: Options);
  /** A new ID, from memory; if that is empty, waits for a server. */
  next(): Promise<bigint>;
  /** Several new IDs, 1 to 1,048,576: all or none. */
  nextMany(count: number): Promise<bigint[]>;
  /** The fields of an ID, by the server's layout. */
  explain(id: bigint | string): Promise<Explained>;
  /** An ID assembled from its fields, for tests and repairs: it is not a new one. */
  make(parts: Parts): Promise<bigint>;
  /** The moment at which a tick of the server's layout begins. */
  transTime(time: bigint | number): Promise<Date>;
  /** Drops the IDs in memory. Calls in progress and later ones reject with the kind `SEALED`. */
  close(): void;
}

/** Text formats of IDs that need neither a layout nor a key. */
export type Format =
  | "decimal" | "padded-decimal" | "hex" | "base36" | "base62" | "crockford" | "crockford-check"
  | "decimal-damm" | "decimal-mod97" | "decimal-luhn" | "uuid";
/** The text of an ID. Throws a `RangeError` if the ID is no `BigInt` of 64 bits. */
export function encode(id: bigint, format: Format): string;
/** The ID of a text. Any other text is a `RangeError`: nothing is trimmed, cut off or corrected. */
export function decode(text: string, format: Format): bigint;
