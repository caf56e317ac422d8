// The board on which a position is set up: a click puts the chosen piece, or moves pieces from square to square;
// pieces can be dragged with any tool. Each square is a button, for keys and screen readers. So is each kind of piece
// in hand: a click adds one, the right button or the tool that erases takes one away.
const RANKS = "abcdefghi", MOVE = "move", ERASE = "erase";
const HAND = ["R", "B", "G", "S", "N", "L", "P"], HAND_INDEX = { P: 0, L: 1, N: 2, S: 3, G: 4, B: 5, R: 6 };
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
const isWhite = (symbol) => symbol !== symbol.toUpperCase();
export default {
  template: `
  <div class="kx">
    <div ref="board" class="kx-board" role="group" :aria-label="texts.board" @pointerup="onUp" @pointercancel="held = null" @keydown="onKey">
      <button v-for="cell in cells" :key="cell.sq" class="kx-square" :class="{ 'kx-lifted': lifted === cell.sq }" :data-square="cell.name" :data-sq="cell.sq"
              :data-piece="cell.symbol" :aria-label="cell.label" :tabindex="cell.sq === resting ? 0 : -1" @focus="resting = cell.sq"
              @pointerdown="held = cell.sq" @click="act(cell.sq)" @contextmenu.prevent="turn(cell.sq)">
        <svg v-if="cell.symbol" :class="'kb-' + lettering" viewBox="-30 -33 60 66" aria-hidden="true"><use :href="href(cell.symbol)"/></svg>
      </button>
    </div>
    <div v-for="(hand, index) in shownHands" :key="hand.side" class="kx-hand" :class="index ? 'kx-near' : 'kx-far'" role="group" :aria-label="hand.label">
      <button v-for="held in hand.kinds" :key="held.symbol" class="kx-held" :class="{ 'kx-none': !held.number }" :data-hand="held.symbol" :aria-label="held.label"
              :title="held.label" @click="count(held, tool === 'erase' ? -1 : 1)" @contextmenu.prevent="count(held, -1)" @keydown.delete.prevent="count(held, -1)">
        <svg :class="'kb-' + lettering" viewBox="-30 -33 60 66" aria-hidden="true"><use :href="href(held.symbol)"/></svg>
        <span v-if="held.number" class="kx-number" aria-hidden="true">{{ held.number }}</span>
      </button>
    </div>
  </div>`,
  props: { board: Array, hands: Array, tool: String, flip: Boolean, lettering: String, texts: Object },
  data() { return { lifted: null, held: null, resting: 40 }; },
  computed: {
    cells() {
      return Array.from({ length: 81 }, (_, shown) => {
        const sq = this.flip ? 80 - shown : shown, symbol = this.board[sq], name = `${9 - (sq % 9)}${RANKS[Math.floor(sq / 9)]}`;
        const square = `${name[0]}${this.texts.ranks[RANKS.indexOf(name[1])]}`;
        const label = symbol ? fill(this.texts.cell, { square, side: this.texts.sides[isWhite(symbol) ? 1 : 0], piece: this.texts.pieces[symbol.toUpperCase()] })
          : fill(this.texts.empty, { square });
        return { sq, symbol, name, label };
      });
    },
    shownHands() { // the far one first
      const hands = [0, 1].map((side) => ({ side, label: fill(this.texts.hand, { side: this.texts.sides[side] }), kinds: HAND.map((letter) => {
        const kind = HAND_INDEX[letter], number = this.hands[side][kind];
        return { side, kind, number, symbol: side ? letter.toLowerCase() : letter, label: fill(this.texts.held, { piece: this.texts.pieces[letter], number }) };
      }) }));
      return this.flip ? hands : hands.reverse();
    },
  },
  watch: { tool() { this.lifted = null; } },
  methods: {
    href(symbol) { return `#k-${this.lettering}-${symbol}-${isWhite(symbol) !== this.flip ? 1 : 0}`; },
    act(sq) {
      if (this.tool === ERASE) this.$emit("put", { sq, symbol: "" });
      else if (this.tool !== MOVE) this.$emit("put", { sq, symbol: this.board[sq] === this.tool ? "" : this.tool });
      else if (this.lifted === null) this.lifted = this.board[sq] ? sq : null;
      else { if (this.lifted !== sq) this.$emit("carry", { from: this.lifted, to: sq }); this.lifted = null; }
    },
    count({ side, kind }, step) { this.$emit("count", { side, kind, step }); },
    turn(sq) { this.$emit("turn", { sq }); },
    onUp(event) { // a piece is dragged with any tool
      const from = this.held, square = document.elementFromPoint(event.clientX, event.clientY)?.closest(".kx-square");
      this.held = null;
      if (from === null || !square || Number(square.dataset.sq) === from || !this.board[from]) return;
      this.lifted = null;
      this.$emit("carry", { from, to: Number(square.dataset.sq) });
    },
    onKey(event) {
      const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (step) {
        const shown = this.flip ? 80 - this.resting : this.resting;
        const column = Math.max(0, Math.min(8, (shown % 9) + step[0])), row = Math.max(0, Math.min(8, Math.floor(shown / 9) + step[1]));
        this.resting = this.flip ? 80 - (row * 9 + column) : row * 9 + column;
        this.$refs.board.querySelector(`[data-sq="${this.resting}"]`).focus();
      } else if (event.key === "Delete" || event.key === "Backspace") this.$emit("put", { sq: this.resting, symbol: "" });
      else if (event.key === " ") { event.preventDefault(); this.turn(this.resting); return; }
      else return;
      event.preventDefault();
    },
  },
};
