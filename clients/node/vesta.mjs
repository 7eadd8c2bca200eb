// IDs from Vesta over REST as BigInt, taken ahead. Needs only Node 18, or a browser.

export { decode, encode } from "./formats.mjs";

const MAX_COUNT = 1_048_576; // IDs of one request
const MAX_ID = 2n ** 64n - 1n;
const OFTEN = 10_000; // a refill that soon after the last one asks for twice as many, in ms
const FIRST_PAUSE = 50, LONGEST_PAUSE = 1000; // between attempts while every server fails, in ms
const LONGEST_RETRY_AFTER = 60_000;

/** A failed call. `kind` is the server's name for the error, see vesta.d.ts. */
export class VestaError extends Error {
  constructor(message, { kind = "", status, server, retry = false, retryAfter = 0, cause } = {}) {
    super(message, { cause });
    Object.assign(this, { name: "VestaError", kind, status, server, retry, retryAfter });
  }
}

/** Takes IDs ahead from the first server that answers. */
export class VestaClient {
  #servers; #authorization; #headers; #batch; #maxWait; #maxAge; #attempt;
  #runs = []; // { next, step, left, expiry }
  #left = 0; #goal = 1; #filled = -Infinity; // IDs in memory, IDs to have there, time of the last refill
  #awaited = 0; #filling = false; #failed; #nextTry = 0; #pause = FIRST_PAUSE;
  #waiting = new Set(); // functions that wake a waiting call
  #at = 0; // the server that answered last
  #last = new VestaError("", { kind: "DEADLINE_EXCEEDED" });
  #closed = false;
  #requests = new Set(); // AbortController of each

  constructor({ servers, token, batch = 10_000, maxWait = 2000, maxAge = 60_000, headers = () => ({}), allowPlaintext = false }) {
    const urls = [servers].flat();
    check("number of servers", urls.length, 1, 64);
    [this.#batch, this.#maxWait, this.#maxAge] = [batch, maxWait, maxAge];
    check("batch", batch, 1, MAX_COUNT);
    check("maxWait", maxWait, 1, 3_600_000);
    check("maxAge", maxAge, 1, Infinity);
    if (token !== undefined && !/^[!-~]+$/.test(token)) throw new TypeError("the token must be visible ASCII characters");
    this.#headers = headers;
    this.#authorization = token === undefined ? undefined : `Bearer ${token}`;
    this.#servers = urls.map((url) => {
      if (!/^https?:\/\/[^/@?#\s]+(\/[^@?#\s]*)?$/.test(url)) {
        throw new TypeError("a server must be http://HOST:PORT or https://HOST:PORT, without user, query and fragment");
      }
      const { protocol, hostname } = new URL(url);
      if (token && protocol === "http:" && !allowPlaintext && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname)) {
        throw new TypeError(`${url} would get the token in plain text; use https:// or allowPlaintext`);
      }
      return { url: url.replace(/\/+$/, ""), pausedUntil: 0, failure: undefined };
    });
    this.#attempt = urls.length === 1 ? maxWait : maxWait / 2;
  }

  /** A new ID, from memory; if that is empty, waits for a server. */
  async next() {
    const fresh = this.#left > Math.floor(this.#goal / 2) && this.#runs[0].expiry > performance.now();
    return (fresh ? this.#pop(1) : await this.#take(1))[0];
  }

  /** Several new IDs, 1 to 1,048,576: all or none. */
  async nextMany(count) {
    check("count", count, 1, MAX_COUNT);
    return this.#take(count);
  }

  /** The fields of an ID, by the server's layout. */
  explain(id) {
    return this.#call(`/v1/ids/${BigInt(id)}`, (body) => {
      const explained = readExactly(body);
      const fields = { layout: explained.layout, moment: readMoment(explained.moment) };
      for (const name of ["id", "time", "seq", "machine", "genMethod", "type", "version"]) fields[name] = BigInt(explained[name]);
      expect(fields.id === BigInt(id));
      return fields;
    });
  }

  /** An ID assembled from its fields, for tests and repairs: it is not a new one. */
  make(fields) {
    const given = Object.entries(fields).filter(([, value]) => value !== undefined);
    return this.#call(`/makeid?${new URLSearchParams(given)}&once=`, (body, once) => readText(body, once, (text) => BigInt(text.match(/^\d+$/)[0])));
  }

  /** The moment at which a tick of the server's layout begins. */
  transTime(time) {
    return this.#call(`/transtime?time=${BigInt(time)}&once=`, (body, once) => readText(body, once, readMoment));
  }

  /** Drops the IDs in memory. Calls in progress and later ones fail with the kind `SEALED`. */
  close() {
    [this.#closed, this.#runs, this.#left] = [true, [], 0];
    for (const request of this.#requests) request.abort();
    this.#wake();
  }

  async #take(count) {
    const deadline = performance.now() + this.#maxWait;
    this.#awaited += count;
    try {
      for (;;) {
        this.#open();
        const now = performance.now();
        while (this.#runs[0]?.expiry <= now) {
          const { left } = this.#runs.shift();
          this.#left -= left;
          this.#goal = Math.max(this.#goal - left, 1);
        }
        if (!this.#filling && now >= this.#nextTry && this.#left - this.#awaited < Math.floor(this.#goal / 2)) {
          const goal = now - this.#filled < OFTEN ? Math.min(2 * this.#goal, this.#batch) : this.#goal;
          this.#fill(Math.min(Math.max(goal - this.#left, this.#awaited), MAX_COUNT), goal);
        }
        if (this.#left >= count) return this.#pop(count);
        const failed = this.#filling ? undefined : this.#failed;
        if (failed && (!failed.retry || this.#nextTry >= deadline)) {
          throw failed.retry ? this.#unanswered("") : new VestaError(failed.message, { ...failed, cause: failed });
        }
        if (now >= deadline) throw this.#unanswered(`no ID within ${this.#maxWait} ms: `);
        await this.#changed((this.#filling ? deadline : Math.min(this.#nextTry, deadline)) - now);
      }
    } finally {
      this.#awaited -= count;
    }
  }

  #pop(count) {
    const ids = new Array(count);
    for (let i = 0; i < count; i++) {
      const run = this.#runs[0];
      ids[i] = run.next;
      run.next += run.step;
      if (--run.left === 0) this.#runs.shift();
    }
    this.#left -= count;
    return ids;
  }

  async #fill(count, goal) {
    this.#filling = true;
    const expiry = performance.now() + this.#maxAge;
    try {
      const runs = await this.#ask(`/v1/runs?count=${count}&once=`, (body, once) => readRuns(body, once, count, expiry));
      [this.#failed, this.#goal, this.#filled] = [undefined, goal, performance.now()];
      if (!this.#closed) {
        this.#runs.push(...runs);
        this.#left += count;
      }
    } catch (error) {
      this.#failed = error;
      this.#nextTry = performance.now() + this.#delay(error);
    }
    this.#filling = false;
    this.#wake();
  }

  async #call(path, read) {
    const deadline = performance.now() + this.#maxWait;
    for (;;) {
      try {
        return await this.#ask(path, read, deadline);
      } catch (error) {
        const delay = this.#delay(error);
        // Another attempt needs time, or its time-out would hide this error.
        if (!error.retry || performance.now() + delay >= deadline - this.#maxWait / 8) throw error;
        await this.#changed(delay);
      }
    }
  }

  #delay(error) {
    const pause = this.#pause;
    this.#pause = Math.min(2 * pause, LONGEST_PAUSE);
    return error.retry ? Math.max(error.retryAfter, pause * (0.5 + Math.random() / 2)) : LONGEST_PAUSE;
  }

  /** Asks each server once, beginning with the one that answered last. */
  async #ask(path, read, deadline = Infinity) {
    const first = this.#at;
    for (let i = 0; i < this.#servers.length; i++) {
      const at = (first + i) % this.#servers.length;
      const server = this.#servers[at];
      const now = performance.now();
      this.#open();
      if (now < server.pausedUntil) continue;
      let failure;
      const once = path.endsWith("&once=") ? Array.from({ length: 16 }, () => Math.floor(36 * Math.random()).toString(36)).join("") : "";
      const body = await this.#get(server, path + once, Math.min(this.#attempt, Math.max(deadline - now, 1))).catch((error) => {
        if (!error.retry) throw error;
        failure = error;
      });
      try {
        if (!failure) {
          const answer = read(body, once);
          [server.failure, this.#at, this.#pause] = [undefined, at, FIRST_PAUSE];
          return answer;
        }
      } catch (cause) {
        const why = cause instanceof Mistaken ? cause.message : "not an answer of Vesta";
        failure = new VestaError(`${server.url}: ${why}`, { kind: "INTERNAL", status: 200, server: server.url, retry: true, cause });
      }
      this.#last = server.failure = failure;
      server.pausedUntil = performance.now() + Math.min(failure.retryAfter, LONGEST_RETRY_AFTER);
    }
    throw this.#unanswered("");
  }

  #unanswered(start) {
    const said = this.#servers.map(({ url, failure }) => failure?.message ?? `${url}: no answer yet`);
    const wait = Math.min(...this.#servers.map((server) => server.pausedUntil)) - performance.now();
    return new VestaError(start + said.join("; "), { ...this.#last, retry: true, retryAfter: Math.max(wait, 0), cause: this.#last });
  }

  async #get(server, path, limit) {
    const { url } = server;
    const headers = new Headers(this.#headers());
    if (this.#authorization) headers.set("authorization", this.#authorization);
    let response, body;
    const request = new AbortController();
    const timer = setTimeout(() => request.abort(), limit);
    this.#requests.add(request);
    try {
      const options = { headers, signal: request.signal, cache: "no-store", redirect: "manual", credentials: "omit" };
      response = await fetch(url + path, options);
      body = await response.text();
    } catch (cause) {
      this.#open();
      const [kind, why] = request.signal.aborted
        ? ["DEADLINE_EXCEEDED", `no answer within ${Math.round(limit)} ms`]
        : ["UNAVAILABLE", cause.cause?.message || cause.cause?.code || cause.message];
      throw new VestaError(`${url}: ${why}`, { kind, server: url, retry: true, cause });
    } finally {
      clearTimeout(timer);
      this.#requests.delete(request);
    }
    if (response.status === 200) return body;
    throw refusal(url, response, body);
  }

  #open() {
    if (this.#closed) throw new VestaError("the client is closed", { kind: "SEALED" });
  }

  /** Resolves after a refill, or after so many milliseconds. */
  #changed(most) {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.#waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, most);
      this.#waiting.add(wake);
    });
  }

  #wake() {
    for (const wake of [...this.#waiting]) wake();
  }
}

function check(name, value, least, most) {
  if (!(value >= least && value <= most) || (most <= MAX_COUNT && !Number.isInteger(value))) {
    throw new RangeError(`${name} must be ${least} to ${most}, but is ${value}`);
  }
}

/** An answer to another request. */
class Mistaken extends Error {}

function expect(matches) {
  if (matches) return;
  throw new Mistaken("this answer is to another request (its `once` is not the one sent): a cache or a proxy in between repeats answers, or the server is older than this client");
}

/** JSON with its numbers as texts: JSON.parse rounds those above 2^53. */
function readExactly(body) {
  return JSON.parse(body.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (token) => (token[0] === '"' ? token : `"${token}"`)));
}

/** A text, followed by the `once` of its request. */
function readText(body, once, read) {
  const [text, name] = body.trim().split(" ");
  const value = read(text);
  expect(name === once);
  return value;
}

function readMoment(text) {
  const moment = new Date(text.trim());
  if (Number.isNaN(moment.getTime())) throw new RangeError(`expected a moment, got ${text.slice(0, 40)}`);
  return moment;
}

function readRuns(body, once, count, expiry) {
  let [before, total, open] = [-1n, 0, []]; // open: runs that reach beyond the first ID of the next one
  const answer = JSON.parse(body);
  const given = [...answer.runs];
  expect(answer.once === once);
  const runs = given.map(({ first, step, count: left }) => {
    const run = { next: BigInt(first), step: BigInt(step), left, expiry };
    if (!(Number.isInteger(left) && left > 0) || run.next < 0n || run.step < 1n || run.next + run.step * BigInt(left - 1) > MAX_ID) {
      throw new RangeError("a run is out of range");
    }
    open = open.filter((it) => it.next + it.step * BigInt(it.left - 1) >= run.next);
    const meets = (it) => it.step !== run.step || (run.next - it.next) % it.step === 0n;
    if (run.next <= before || open.some(meets)) throw new RangeError("runs share an ID");
    [before, total] = [run.next, total + left];
    open.push(run);
    return run;
  });
  if (total !== count) throw new RangeError(`expected runs of ${count} IDs`);
  return runs;
}

function refusal(url, response, body) {
  const { status } = response;
  let kind = "", why = "", retryAfter = 1000 * (Number.parseInt(response.headers.get("retry-after") ?? "0", 10) || 0);
  try {
    const problem = JSON.parse(body);
    if (typeof problem.kind === "string") [kind, why] = [problem.kind, ` ${problem.kind}: ${problem.detail}`];
    retryAfter = Number(problem.retryAfterMs ?? retryAfter) || 0;
  } catch {} // of a proxy: not JSON
  if (!kind) why = ": not an answer of Vesta";
  const message = `${url}: ${status}${why.slice(0, 300).replace(/\p{Cc}/gu, " ")}`;
  // Another server may have what this one, which is none of ours, has not.
  const retry = status === 404 || status === 429 || status >= 500 || (status >= 400 && !kind);
  return new VestaError(message, { kind, status, server: url, retry, retryAfter });
}
