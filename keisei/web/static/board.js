// A Shogi board: shows a position, and reports which legal move was clicked, dragged or typed.
// It has no rules: the server sends the legal moves along with the position. A move that is entered
// while the opponent thinks (a premove) waits here and is played if it is legal then.
// The picture is for eyes and pointers; the grid of squares over it is for keys and screen readers.

const CELL_W = 60, CELL_H = 66, RIM = 30, GRID_W = 9 * CELL_W, GRID_H = 9 * CELL_H;
const BOARD_W = GRID_W + 2 * RIM, BOARD_H = GRID_H + 2 * RIM;
const STAND_W = 140, STAND_H = 310, GAP = 14, SLOT_W = 64, SLOT_H = 74, ROW_H = 84;
const HELD_W = 58, HELD_H = 70, WIDE_HELD = 80; // a kind of piece in hand: beside the board, and above or below it
const DRAG_FROM = 6; // pixels: a shorter movement is a click
const HAND = ["R", "B", "G", "S", "N", "L", "P"]; // strongest first
const HAND_INDEX = { P: 0, L: 1, N: 2, S: 3, G: 4, B: 5, R: 6 };
const KANJI = { P: "歩", L: "香", N: "桂", S: "銀", G: "金", B: "角", R: "飛" };
const RANKS_KANJI = "一二三四五六七八九", RANKS = "abcdefghi";
const COMMANDS = {
  ArrowLeft: "back", ArrowRight: "forward", Home: "first", End: "last", ArrowUp: "first",
  ArrowDown: "last", f: "flip", u: "take_back", n: "new", h: "hints", k: "pieces", m: "type",
  v: "sound", " ": "pause", "?": "help",
};
const HOME = 60; // the square 3g, where the cursor is at first

const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const count = (hands) => hands.flat().reduce((sum, number) => sum + number, 0);
const isStill = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

const squareName = (sq) => `${9 - (sq % 9)}${RANKS[Math.floor(sq / 9)]}`;
const squareOf = (name) => RANKS.indexOf(name[1]) * 9 + (9 - Number(name[0]));
const isWhite = (symbol) => symbol !== symbol.toUpperCase();

// "7g7f+" -> { from, to, drop, promote }
function parseMove(usi) {
  if (usi[1] === "*") return { from: null, drop: usi[0], to: squareOf(usi.slice(2)), promote: false };
  return { from: squareOf(usi), drop: null, to: squareOf(usi.slice(2)), promote: usi.endsWith("+") };
}

export default {
  template: `
  <div class="kb" :class="[lettering === 'kanji' ? 'kb-kanji' : 'kb-letters', 'kb-board-' + board, 'kb-pieces-' + wood, { 'kb-compact': compact }]">
  <div class="kb-frame-box" :style="{ '--kb-ratio': geometry.width / geometry.height }">
  <svg ref="svg" :viewBox="'0 0 ' + geometry.width + ' ' + geometry.height" aria-hidden="true"
       :class="{ 'kb-grabbing': drag && drag.moved }"
       @pointerdown="onDown" @pointermove="onMove" @pointerup="onUp" @pointercancel="onCancel" @contextmenu.prevent>
    <g class="kb-wood">
      <rect :x="geometry.x" :y="geometry.y + 5" :width="${BOARD_W}" :height="${BOARD_H}" rx="6" class="kb-edge"/>
      <rect :x="geometry.x" :y="geometry.y" :width="${BOARD_W}" :height="${BOARD_H}" rx="6" class="kb-top"/>
      <path :d="grain" class="kb-grain"/>
      <template v-for="stand in geometry.stands">
        <rect :x="stand.x" :y="stand.y + 4" :width="stand.w" :height="stand.h" rx="6" class="kb-edge"/>
        <rect :x="stand.x" :y="stand.y" :width="stand.w" :height="stand.h" rx="6" class="kb-stand"/>
      </template>
    </g>
    <g>
      <rect v-for="mark in marks" :class="mark.name" :x="mark.x" :y="mark.y" width="${CELL_W}" height="${CELL_H}"/>
    </g>
    <path class="kb-grid" :d="grid"/>
    <rect class="kb-frame" :x="gx" :y="gy" width="${GRID_W}" height="${GRID_H}"/>
    <circle v-for="s in stars" class="kb-star" :cx="s[0]" :cy="s[1]" r="4"/>
    <g class="kb-labels">
      <text v-for="t in labels" :x="t.x" :y="t.y">{{ t.text }}</text>
    </g>
    <g>
      <g v-for="p in pieces" :key="p.sq" class="kb-piece" :data-square="p.name" :data-piece="p.symbol"
         :class="{ 'kb-own': p.movable, 'kb-lifted': p.lifted }" :transform="p.place">
        <use :href="p.href"/>
      </g>
    </g>
    <g v-for="slot in slots" class="kb-held" :data-hand="slot.letter" :data-color="slot.color" :data-count="slot.count"
       :class="{ 'kb-own': slot.movable, 'kb-chosen': slot.chosen }" :transform="slot.place">
      <rect :x="-geometry.held.w / 2" :y="-geometry.held.h / 2" :width="geometry.held.w" :height="geometry.held.h" rx="8" class="kb-slot"/>
      <use :href="slot.href" :class="{ 'kb-lifted': slot.lifted }"/>
      <template v-if="slot.count > 1">
        <rect x="8" y="14" :width="slot.count > 9 ? 28 : 22" height="22" rx="11" class="kb-badge"/>
        <text :x="slot.count > 9 ? 22 : 19" y="30" class="kb-count">{{ slot.count }}</text>
      </template>
    </g>
    <g class="kb-targets">
      <template v-for="t in targets">
        <rect v-if="t.takes" :x="t.x + 2" :y="t.y + 2" width="${CELL_W - 4}" height="${CELL_H - 4}" rx="6" class="kb-takes" :data-target="t.name"/>
        <circle v-else :cx="t.x + ${CELL_W / 2}" :cy="t.y + ${CELL_H / 2}" r="9" class="kb-goes" :data-target="t.name"/>
      </template>
    </g>
    <g class="kb-arrows" v-if="!drag && !choice">
      <g v-for="a in shownArrows">
        <path v-if="a.shape" :d="a.shape" :opacity="a.opacity"/>
        <circle v-else :cx="a.x" :cy="a.y" r="27" class="kb-ring" :stroke-width="3 + 7 * a.share" :opacity="a.opacity"/>
        <rect :x="a.lx - a.wide / 2" :y="a.ly - 11" :width="a.wide" height="22" rx="11" class="kb-share-back"/>
        <text :x="a.lx" :y="a.ly + 5.5" class="kb-share">{{ a.text }}</text>
      </g>
    </g>
    <g class="kb-drawings">
      <g v-for="d in shownDrawings" :class="d.name" :data-drawn="d.way">
        <path v-if="d.shape" :d="d.shape"/>
        <circle v-else :cx="d.x" :cy="d.y" r="27"/>
      </g>
    </g>
    <rect v-if="cursor !== null" class="kb-cursor" :x="corner(cursor)[0] + 2" :y="corner(cursor)[1] + 2" width="${CELL_W - 4}" height="${CELL_H - 4}" rx="6"/>
    <g v-if="drag && drag.moved" class="kb-dragged" :transform="'translate(' + drag.x + ' ' + drag.y + ') scale(1.12)'">
      <use :href="drag.href"/>
    </g>
    <g v-if="choice" class="kb-choice">
      <rect :x="gx" :y="gy" width="${GRID_W}" height="${GRID_H}" class="kb-veil"/>
      <g v-for="c in choice.options" :transform="'translate(' + c.x + ' ' + c.y + ')'" class="kb-option"
         :data-choice="c.promote ? 'promote' : 'keep'">
        <rect x="-38" y="-40" width="76" height="80" rx="12"/>
        <use :href="c.href" transform="scale(1.12)"/>
      </g>
    </g>
  </svg>
  <div class="kb-cells" role="grid" :aria-label="texts.board" :style="place(gx, gy, ${GRID_W}, ${GRID_H})"
       @keydown="onBoardKey" @focusout="cursor = null">
    <div v-for="row in cells" role="row">
      <div v-for="cell in row" role="gridcell" :key="cell.sq" :data-cell="cell.name" :aria-label="cell.label"
           :aria-selected="cell.chosen" :tabindex="cell.sq === resting ? 0 : -1"
           @focus="cursor = resting = cell.sq" @click="activate(cell.sq)"></div>
    </div>
  </div>
  <div v-for="(side, index) in held" :key="index" class="kb-holds" role="group" :aria-label="side.label" @keydown="onBoardKey">
    <button v-for="slot in side.slots" :key="slot.letter" :aria-label="slot.label" :disabled="!slot.movable" :aria-pressed="slot.chosen"
            :style="place(slot.x - geometry.held.w / 2, slot.y - geometry.held.h / 2, geometry.held.w, geometry.held.h)" @click="take(slot.letter)"></button>
  </div>
  <div v-if="choice" class="kb-holds" role="group" :aria-label="texts.choice" @keydown="onBoardKey">
    <button v-for="c in choice.options" :key="c.promote" :aria-label="c.promote ? texts.promote : texts.keep" ref="options"
            :style="place(c.x - 38, c.y - 40, 76, 80)" @click="decide(c.promote)"></button>
  </div>
  </div>
  </div>`,
  props: {
    state: Object, flip: Boolean, lettering: String, arrows: Array, texts: Object,
    board: String, wood: String, sound: Boolean,
  },
  data() {
    return {
      chosen: null, drag: null, choice: null, cursor: null, resting: HOME, pending: null, premove: null,
      drawing: null, drawings: [], compact: false, wasChosen: false,
    };
  },
  computed: {
    geometry() {
      if (this.compact) {
        const stand = (y) => ({ x: 0, y, w: BOARD_W, h: ROW_H });
        return { x: 0, y: ROW_H + 12, width: BOARD_W, height: BOARD_H + 2 * ROW_H + 30,
                 held: { w: WIDE_HELD, h: WIDE_HELD }, stands: [stand(0), stand(ROW_H + BOARD_H + 24)] };
      }
      const x = STAND_W + GAP;
      return { x, y: 2, width: BOARD_W + 2 * x, height: BOARD_H + 10, held: { w: HELD_W, h: HELD_H }, stands: [
        { x: 0, y: 2, w: STAND_W, h: STAND_H },
        { x: x + BOARD_W + GAP, y: 2 + BOARD_H - STAND_H, w: STAND_W, h: STAND_H } ] };
    },
    gx() { return this.geometry.x + RIM; },
    gy() { return this.geometry.y + RIM; },
    grain() {
      const { x, y } = this.geometry;
      let d = "";
      for (let i = 1; i < BOARD_W / 9; i++) {
        const left = x + i * 9 + 3 * Math.sin(i * i);
        if (left < x + BOARD_W - 4) d += `M${left.toFixed(1)} ${y + 2}q${(9 * Math.sin(left)).toFixed(1)} ${BOARD_H / 2} 0 ${BOARD_H - 4}`;
      }
      return d;
    },
    grid() {
      let d = "";
      for (let i = 1; i < 9; i++) d += `M${this.gx} ${this.gy + i * CELL_H}h${GRID_W}M${this.gx + i * CELL_W} ${this.gy}v${GRID_H}`;
      return d;
    },
    stars() {
      return [3, 6].flatMap((r) => [3, 6].map((c) => [this.gx + c * CELL_W, this.gy + r * CELL_H]));
    },
    labels() {
      const ranks = this.lettering === "kanji" ? RANKS_KANJI : RANKS, texts = [];
      for (let i = 0; i < 9; i++) {
        texts.push({ x: this.gx + (i + 0.5) * CELL_W, y: this.gy - 9, text: this.flip ? i + 1 : 9 - i });
        texts.push({ x: this.gx + GRID_W + RIM / 2, y: this.gy + (i + 0.5) * CELL_H + 6, text: ranks[this.flip ? 8 - i : i] });
      }
      return texts;
    },
    // The position on display: a move is shown before the server confirms it.
    shown() {
      const board = [...this.state.board], hands = this.state.hands.map((hand) => [...hand]);
      let last = this.state.last;
      if (this.pending) {
        const { from, to, drop, promote } = parseMove(this.pending), turn = this.state.turn;
        if (drop) {
          board[to] = turn ? drop.toLowerCase() : drop;
          hands[turn][HAND_INDEX[drop]]--;
        } else {
          board[to] = (promote ? "+" : "") + board[from];
          board[from] = "";
        }
        last = { from: from ?? -1, to };
      }
      return { board, hands, last };
    },
    legal() { return this.pending ? [] : this.state.legal; },
    // The side that enters moves: the one to move, or the one that waits and may enter a premove.
    mover() { return this.isWaiting ? this.state.premove : this.state.turn; },
    isWaiting() { return this.state.premove >= 0; },
    origins() {
      if (!this.isWaiting) return new Set(this.legal.map((usi) => usi.slice(0, 2)));
      const own = this.shown.board.flatMap((symbol, sq) => (symbol && isWhite(symbol) === (this.mover === 1) ? [squareName(sq)] : []));
      return new Set([...own, ...HAND.filter((letter) => this.shown.hands[this.mover][HAND_INDEX[letter]]).map((letter) => `${letter}*`)]);
    },
    marks() {
      const { last } = this.shown, marks = [];
      const add = (sq, name) => { const [x, y] = this.corner(sq); marks.push({ x, y, name }); };
      if (last && last.from >= 0) add(last.from, "kb-from");
      if (last) add(last.to, "kb-to");
      if (this.state.check >= 0 && !this.pending) add(this.state.check, "kb-check");
      if (this.chosen && this.chosen[1] !== "*") add(squareOf(this.chosen), "kb-selected");
      if (this.premove) {
        add(this.premove.to, "kb-premove");
        if (this.premove.start[1] !== "*") add(squareOf(this.premove.start), "kb-premove");
      }
      return marks;
    },
    pieces() {
      return this.shown.board.flatMap((symbol, sq) => {
        if (!symbol) return [];
        const name = squareName(sq), [x, y] = this.corner(sq);
        return [{
          sq, symbol, name, href: this.href(symbol), movable: this.origins.has(name),
          lifted: this.drag && this.drag.moved && this.drag.origin === name,
          place: `translate(${x + CELL_W / 2} ${y + CELL_H / 2})`,
        }];
      });
    },
    slots() {
      const slots = [];
      for (const color of [0, 1]) {
        const top = (color === 1) !== this.flip, stand = this.geometry.stands[top ? 0 : 1];
        let place = 0;
        HAND.forEach((letter) => {
          const count = this.shown.hands[color][HAND_INDEX[letter]];
          if (!count) return;
          const movable = color === this.mover && this.origins.has(`${letter}*`);
          let x, y;
          if (this.compact) {
            // On a phone each kind of piece has a fixed place, strongest on the left.
            const step = BOARD_W / 7, index = HAND.indexOf(letter);
            x = (index + 0.5) * step; y = stand.y + ROW_H / 2;
          } else {
            x = stand.x + STAND_W / 2 + ((place % 2) - 0.5) * SLOT_W;
            y = stand.y + 10 + (Math.floor(place / 2) + 0.5) * SLOT_H;
          }
          place++;
          slots.push({
            letter, color, count, movable, x, y, place: `translate(${x} ${y})`,
            href: this.href(color ? letter.toLowerCase() : letter),
            chosen: movable && this.chosen === `${letter}*`,
            lifted: movable && count === 1 && this.drag && this.drag.moved && this.drag.origin === `${letter}*`,
          });
        });
      }
      return slots;
    },
    targets() {
      if (!this.chosen || this.choice) return [];
      const seen = new Set();
      return this.legal.filter((usi) => usi.startsWith(this.chosen)).flatMap((usi) => {
        const { to } = parseMove(usi);
        if (seen.has(to)) return [];
        seen.add(to);
        const [x, y] = this.corner(to);
        return [{ x, y, name: squareName(to), takes: this.shown.board[to] !== "" }];
      });
    },
    shownArrows() {
      if (this.pending) return [];
      // A move with and without promotion is one arrow; moves below 1 % have none.
      const shares = new Map();
      for (const [usi, share] of this.arrows || []) {
        const way = usi.slice(0, 4);
        shares.set(way, (shares.get(way) ?? 0) + share);
      }
      const ways = [...shares].filter(([, share]) => share >= 0.01).sort((a, b) => a[1] - b[1]);
      return ways.map(([way, share]) => this.arrow(parseMove(way), share));
    },
    shownDrawings() {
      return this.drawings.map(({ from, to, name }) => ({
        name, way: `${squareName(from)}${squareName(to)}`,
        ...(from === to ? { x: this.middle(to)[0], y: this.middle(to)[1] } : this.arrow({ from, to }, 0.4)),
      }));
    },
    cells() {
      const rows = [];
      for (let shown = 0; shown < 81; shown++) {
        const sq = this.flip ? 80 - shown : shown, symbol = this.shown.board[sq];
        if (shown % 9 === 0) rows.push([]);
        rows[rows.length - 1].push({ sq, name: squareName(sq), label: this.cellLabel(sq, symbol), chosen: this.chosen === squareName(sq) });
      }
      return rows;
    },
    held() {
      return [0, 1].map((color) => ({
        label: fill(this.texts.hand, { side: this.texts.sides[color] }),
        slots: this.slots.filter((slot) => slot.color === color).map((slot) => ({
          ...slot, label: fill(this.texts.held, { piece: this.texts.pieces[slot.letter], number: slot.count }),
        })),
      }));
    },
  },
  watch: {
    state(now, before) {
      // Also sent when something else has changed: a move that was sent still has no answer then.
      if (JSON.stringify(now) === JSON.stringify(before)) return;
      const wasSent = this.pending !== null, step = now.ply - before.ply;
      this.pending = null;
      if (step !== 0) { this.choice = null; this.drawings = []; }
      if (this.chosen && !this.origins.has(this.chosen)) { this.chosen = null; this.choice = null; }
      if (now.over && !before.over) this.play("end");
      else if (step === 1 && !wasSent) this.play(count(now.hands) > count(before.hands) ? "capture" : "move");
      if (!wasSent) this.$nextTick(() => this.animate(now, before, step));
      this.playPremove();
    },
  },
  mounted() {
    this.media = window.matchMedia("(max-aspect-ratio: 1/1)"); // as in play.css
    this.onMedia = () => { this.compact = this.media.matches; };
    this.onMedia();
    this.media.addEventListener("change", this.onMedia);
    window.addEventListener("keydown", this.onKey);
  },
  unmounted() {
    this.media.removeEventListener("change", this.onMedia);
    window.removeEventListener("keydown", this.onKey);
  },
  methods: {
    href(symbol) {
      const turned = isWhite(symbol) !== this.flip ? 1 : 0;
      return `#k-${this.lettering}-${symbol}-${turned}`;
    },
    place(x, y, width, height) {
      const part = (value, whole) => `${((100 * value) / whole).toFixed(3)}%`, { geometry } = this;
      return { left: part(x, geometry.width), top: part(y, geometry.height), width: part(width, geometry.width), height: part(height, geometry.height) };
    },
    cellLabel(sq, symbol) {
      const name = squareName(sq), square = `${name[0]}${this.texts.ranks[RANKS.indexOf(name[1])]}`;
      if (!symbol) return fill(this.texts.empty, { square });
      return fill(this.texts.cell, { square, side: this.texts.sides[isWhite(symbol) ? 1 : 0], piece: this.texts.pieces[symbol.toUpperCase()] });
    },
    corner(sq) {
      const shown = this.flip ? 80 - sq : sq;
      return [this.gx + (shown % 9) * CELL_W, this.gy + Math.floor(shown / 9) * CELL_H];
    },
    middle(sq) {
      const [x, y] = this.corner(sq);
      return [x + CELL_W / 2, y + CELL_H / 2];
    },
    arrow({ from, to, drop }, share) {
      const [x, y] = this.middle(to), text = `${Math.round(100 * share)}%`;
      const opacity = 0.45 + 0.4 * share;
      if (from === null) {
        const piece = this.lettering === "kanji" ? KANJI[drop] : drop;
        return { x, y, share, lx: x, ly: y + 27, text: `${piece} ${text}`, wide: 64, opacity };
      }
      const [sx, sy] = this.middle(from);
      const length = Math.hypot(x - sx, y - sy), ux = (x - sx) / length, uy = (y - sy) / length;
      const w = 2.5 + 6.5 * share, head = 12 + 8 * share, at = (along, aside) =>
        `${(sx + ux * along - uy * aside).toFixed(1)} ${(sy + uy * along + ux * aside).toFixed(1)}`;
      const end = length - 6, neck = end - head;
      const shape = `M${at(10, w)}L${at(neck, w)}L${at(neck, w + head / 2)}L${at(end, 0)}L${at(neck, -w - head / 2)}L${at(neck, -w)}L${at(10, -w)}Z`;
      if (length < 1.5 * CELL_H) // to the next square: the label would hide all of it
        return { shape, lx: x, ly: y + (uy < -0.5 ? -24 : 24), text, wide: 14 + 9.5 * text.length, opacity };
      // The label is in the arrow's second half, where the arrows of one piece diverge.
      return { shape, lx: sx + ux * length * 0.62, ly: sy + uy * length * 0.62, text, wide: 14 + 9.5 * text.length, opacity };
    },
    // ---- pointer ----
    point(event) {
      const p = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.$refs.svg.getScreenCTM().inverse());
      return [p.x, p.y];
    },
    squareAt(x, y) {
      const column = Math.floor((x - this.gx) / CELL_W), row = Math.floor((y - this.gy) / CELL_H);
      if (column < 0 || column > 8 || row < 0 || row > 8) return null;
      return this.flip ? 80 - (row * 9 + column) : row * 9 + column;
    },
    originAt(x, y) {
      const sq = this.squareAt(x, y);
      if (sq !== null) return this.origins.has(squareName(sq)) ? squareName(sq) : null;
      const slot = this.slots.find((s) => s.movable && 2 * Math.abs(s.x - x) < this.geometry.held.w && 2 * Math.abs(s.y - y) < this.geometry.held.h);
      return slot ? `${slot.letter}*` : null;
    },
    onDown(event) {
      const [x, y] = this.point(event);
      if (event.button === 2) {
        this.premove = null;
        this.drawing = this.squareAt(x, y);
        return;
      }
      if (event.button !== 0 || !event.isPrimary) return;
      this.drawings = [];
      this.premove = null;
      if (this.choice) { event.preventDefault(); this.decideAt(x, y); return; }
      const sq = this.squareAt(x, y);
      if (this.chosen && sq !== null && this.go(sq)) { event.preventDefault(); return; }
      const origin = this.originAt(x, y);
      this.wasChosen = origin !== null && origin === this.chosen;
      this.chosen = origin;
      if (origin === null) return;
      event.preventDefault(); // no focus, no text selection, no scrolling
      this.$refs.svg.setPointerCapture(event.pointerId);
      const symbol = origin[1] === "*" ? (this.mover ? origin[0].toLowerCase() : origin[0]) : this.shown.board[squareOf(origin)];
      this.drag = { origin, x, y, sx: event.clientX, sy: event.clientY, moved: false, href: this.href(symbol) };
    },
    onMove(event) {
      if (!this.drag) return;
      [this.drag.x, this.drag.y] = this.point(event);
      if (Math.hypot(event.clientX - this.drag.sx, event.clientY - this.drag.sy) > DRAG_FROM) this.drag.moved = true;
    },
    onUp(event) {
      if (event.button === 2) { this.endDrawing(event); return; }
      const drag = this.drag;
      this.drag = null;
      if (!drag) return;
      if (!drag.moved) { if (this.wasChosen) this.chosen = null; return; }
      const sq = this.squareAt(...this.point(event));
      if (sq === null || !this.go(sq)) this.chosen = null;
    },
    onCancel() { this.drag = null; this.chosen = null; this.drawing = null; },
    // An arrow from square to square, or a circle; the same again removes it, Shift makes it red.
    endDrawing(event) {
      const from = this.drawing, to = this.squareAt(...this.point(event));
      this.drawing = null;
      if (from === null || to === null) return;
      const others = this.drawings.filter((d) => d.from !== from || d.to !== to);
      const name = event.shiftKey ? "kb-drawn kb-drawn-red" : "kb-drawn";
      this.drawings = others.length < this.drawings.length ? others : [...others, { from, to, name }];
    },
    // Play the chosen piece to a square; false if that is not a legal move.
    go(sq) {
      if (this.isWaiting) {
        const start = this.chosen;
        if (start === squareName(sq)) return false;
        this.chosen = null;
        this.premove = { start, to: sq };
        return true;
      }
      const start = this.chosen + squareName(sq);
      const moves = this.legal.filter((usi) => usi === start || usi === `${start}+`);
      if (moves.length === 0) return false;
      if (moves.length === 1) this.send(moves[0]);
      else this.ask(start, sq);
      return true;
    },
    ask(start, sq) {
      const symbol = this.shown.board[squareOf(start)], [x, y] = this.middle(sq);
      const left = Math.max(this.gx + 80, Math.min(x, this.gx + GRID_W - 80));
      this.choice = { start, options: [
        { promote: true, x: left - 41, y, href: this.href(`+${symbol}`) },
        { promote: false, x: left + 41, y, href: this.href(symbol) } ] };
      if (this.cursor !== null) this.$nextTick(() => this.$refs.options[0].focus());
    },
    decideAt(x, y) {
      const option = this.choice.options.find((o) => Math.abs(o.x - x) < 40 && Math.abs(o.y - y) < 42);
      if (option) { this.decide(option.promote); return; }
      this.choice = null;
      this.chosen = null;
    },
    decide(promote) {
      const { start } = this.choice;
      this.send(promote ? `${start}+` : start);
      this.focusCell(this.resting);
    },
    playPremove() {
      if (!this.premove || this.isWaiting) return;
      const { start, to } = this.premove, way = start + squareName(to);
      this.premove = null;
      const usi = [`${way}+`, way].find((move) => this.legal.includes(move));
      if (usi) this.send(usi);
    },
    send(usi) {
      this.play(this.state.board[parseMove(usi).to] ? "capture" : "move");
      this.pending = usi;
      this.chosen = null;
      this.choice = null;
      this.$emit("move", usi);
    },
    // The server refused the move: show its position again.
    refuse() { this.pending = null; },
    // Move the piece of the last move, or of the one that was stepped back, from where it was.
    animate(now, before, step) {
      if (isStill() || Math.abs(step) !== 1) return;
      const last = step === 1 ? now.last : before.last;
      if (!last) return;
      const piece = (sq) => this.$refs.svg.querySelector(`[data-square="${squareName(sq)}"]`);
      if (last.from >= 0) {
        const [from, to] = step === 1 ? [last.from, last.to] : [last.to, last.from];
        this.glide(piece(to), this.middle(from), this.middle(to));
        return;
      }
      const color = (step === 1 ? before : now).turn, symbol = (step === 1 ? now : before).board[last.to];
      if (!symbol) return;
      const slot = this.slots.find((s) => s.color === color && s.letter === symbol.toUpperCase());
      const stand = this.geometry.stands[(color === 1) !== this.flip ? 0 : 1];
      const hand = slot ? [slot.x, slot.y] : [stand.x + stand.w / 2, stand.y + stand.h / 2];
      if (step === 1) this.glide(piece(last.to), hand, this.middle(last.to));
      else if (slot) this.glide(this.$refs.svg.querySelector(`[data-hand="${slot.letter}"][data-color="${color}"]`), this.middle(last.to), hand);
    },
    glide(element, [sx, sy], [x, y]) {
      element?.animate(
        [{ transform: `translate(${sx}px, ${sy}px)` }, { transform: `translate(${x}px, ${y}px)` }],
        { duration: 160, easing: "ease-out" });
    },
    // ---- sound ----
    // Never before the visitor has done something on the page: no surprise, and browsers refuse it.
    play(name) {
      if (!this.sound || !navigator.userActivation?.hasBeenActive) return;
      new Audio(`/static/sounds/${name}.wav`).play().catch(() => {});
    },
    // ---- keyboard ----
    focusCell(sq) {
      if (this.$el.contains(document.activeElement)) this.$el.querySelector(`[data-cell="${squareName(sq)}"]`).focus();
    },
    activate(sq) {
      const name = squareName(sq);
      if (this.chosen && this.go(sq)) return;
      this.chosen = this.chosen !== name && this.origins.has(name) ? name : null;
    },
    take(letter) {
      this.chosen = this.chosen === `${letter}*` ? null : `${letter}*`;
      this.focusCell(this.resting);
    },
    onBoardKey(event) {
      if (event.ctrlKey || event.altKey || event.metaKey) return;
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      const letter = `${event.key.toUpperCase()}*`;
      if (this.choice && (event.key === "+" || event.key === "=")) {
        this.decide(event.key === "+");
      } else if (event.key === "Escape") {
        this.choice = this.chosen = this.drag = this.premove = null;
        this.focusCell(this.resting);
      } else if (this.choice) {
        return; // the two buttons have the keys
      } else if (this.cursor !== null && step) {
        const shown = this.flip ? 80 - this.cursor : this.cursor;
        const column = Math.max(0, Math.min(8, (shown % 9) + step[0])), row = Math.max(0, Math.min(8, Math.floor(shown / 9) + step[1]));
        this.focusCell(this.flip ? 80 - (row * 9 + column) : row * 9 + column);
      } else if (this.cursor !== null && (event.key === "Enter" || event.key === " ")) {
        this.activate(this.cursor);
      } else if (event.key.length === 1 && HAND.includes(letter[0]) && this.origins.has(letter)) {
        this.take(letter[0]);
      } else return;
      event.preventDefault();
      event.stopPropagation();
    },
    onKey(event) {
      if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
      if (event.target.closest?.("input, textarea, select, .q-slider, .q-dialog, .q-menu, .q-select")) return;
      if (event.key === " " && event.target.closest?.("button, a")) return;
      if (event.key === "Escape" && (this.chosen || this.choice || this.premove)) { this.chosen = this.choice = this.premove = null; return; }
      const command = COMMANDS[event.key];
      if (!command) return;
      event.preventDefault();
      // Without the server, so that what is typed next is not lost.
      if (command === "type") document.querySelector(".kp-typed input")?.focus();
      else this.$emit("command", command);
    },
  },
};
