// The film that the server sends: frames, events, and where each token was when.

const FRAMES_MAX = 1500; // then every other one goes, as at the server

export class Film {
  constructor({ about, frames, events }) {
    this.about = about;
    this.frames = frames;
    this.events = events;
    this.every = 1;
    this.fold();
  }

  get last() { return this.frames[this.frames.length - 1]; }
  get begin() { return this.frames.length ? this.frames[0].t : 0; }
  get end() { return this.frames.length ? this.last.t : 0; }

  add({ frame, events, about }) {
    if (about) this.about = about;
    if (this.frames.length && frame.n <= this.last.n) return;
    const joined = this.frames.length > 0 && frame.n === this.last.n + 1;
    if (this.frames.length && this.last.n % this.every) this.frames.pop(); // it was there as the newest only
    this.frames.push(frame);
    if (events) this.events = [...this.events, ...events].sort((a, b) => a.t - b.t);
    this.walk(frame, joined);
    if (this.frames.length > FRAMES_MAX) {
      this.every *= 2;
      this.frames = this.frames.filter((each, k) => each.n % this.every === 0 || k === this.frames.length - 1);
      this.fold();
    }
  }

  // each token's stops, in the order of time: [t, agent, whether nothing is missing before it]
  fold() {
    this.walks = [];
    this.frames.forEach((frame, k) => this.walk(frame, k > 0 && frame.n === this.frames[k - 1].n + 1));
  }

  walk(frame, joined) {
    frame.tokens.forEach(([, , , , , , stops, whole], m) => {
      const walk = (this.walks[m] ||= []);
      stops.forEach(([t, agent], k) => walk.push([t, agent, k > 0 || (whole && joined)]));
    });
  }

  // the number of the frame that is shown at time t
  at(t) {
    return Math.max(0, after(this.frames, t, (frame) => frame.t) - 1);
  }

  // where a token is at time t: on the way from one agent to another, or at one. It travels in the first half of the
  // time between the ends of two visits; when it really arrived is not recorded everywhere
  place(m, t) {
    const walk = this.walks[m] || [];
    const k = after(walk, t, (stop) => stop[0]) - 1;
    if (k < 0) return null;
    const [begun, from] = walk[k];
    const next = walk[k + 1];
    if (!next || !next[2] || next[1] === from) return { from, to: from, part: 0 };
    return { from, to: next[1], part: Math.min(1, (t - begun) / ((next[0] - begun) / 2 || 1)) };
  }
}

// how many entries, which are in the order of time, are not after t
export function after(list, t, time) {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (time(list[middle]) <= t) low = middle + 1; else high = middle;
  }
  return low;
}
