// The pieces that can be put on the board, and the two hands.
const HAND = ["R", "B", "G", "S", "N", "L", "P"], HAND_INDEX = { P: 0, L: 1, N: 2, S: 3, G: 4, B: 5, R: 6 };
const KINDS = ["K", "R", "B", "G", "S", "N", "L", "P", "+R", "+B", "+S", "+N", "+L", "+P"];
const fill = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => values[name]);
export default {
  template: `
  <div>
    <div class="kx-tools" role="group" :aria-label="texts.tools">
      <button class="kx-tool" :class="{ 'kx-chosen': tool === 'move' }" :aria-pressed="tool === 'move'" data-tool="move" @click="$emit('choose', 'move')">{{ texts.move }}</button>
      <button class="kx-tool" :class="{ 'kx-chosen': tool === 'erase' }" :aria-pressed="tool === 'erase'" data-tool="erase" @click="$emit('choose', 'erase')">{{ texts.erase }}</button>
    </div>
    <div v-for="side in [0, 1]" class="kx-palette" role="group" :aria-label="texts.sides[side]">
      <button v-for="kind in kinds" :key="kind" class="kx-piece" :class="{ 'kx-chosen': tool === own(kind, side) }" :aria-pressed="tool === own(kind, side)"
              :data-symbol="own(kind, side)" :aria-label="name(kind, side)" :title="name(kind, side)" @click="$emit('choose', own(kind, side))">
        <svg :class="'kb-' + lettering" viewBox="-30 -33 60 66" aria-hidden="true"><use :href="'#k-' + lettering + '-' + own(kind, side) + '-' + side"/></svg>
      </button>
    </div>
    <div v-for="side in [0, 1]" role="group" :aria-label="hand(side)">
      <div class="kp-heading">{{ hand(side) }}</div>
      <div class="kx-hand">
        <div v-for="kind in held" :key="kind" class="kx-count">
          <span class="kx-piece" aria-hidden="true"><svg :class="'kb-' + lettering" viewBox="-30 -33 60 66"><use :href="'#k-' + lettering + '-' + own(kind, side) + '-0'"/></svg></span>
          <button class="kx-step" :disabled="!hands[side][index(kind)]" :aria-label="texts.less + ' ' + name(kind, side)" :data-less="own(kind, side)"
                  @click="$emit('count', { side, kind: index(kind), step: -1 })">−</button>
          <output :aria-label="name(kind, side)">{{ hands[side][index(kind)] }}</output>
          <button class="kx-step" :aria-label="texts.more + ' ' + name(kind, side)" :data-more="own(kind, side)"
                  @click="$emit('count', { side, kind: index(kind), step: 1 })">+</button>
        </div>
      </div>
    </div>
  </div>`,
  props: { tool: String, hands: Array, lettering: String, texts: Object },
  data() { return { kinds: KINDS, held: HAND }; },
  methods: {
    own(kind, side) { return side ? kind.toLowerCase() : kind; },
    index(kind) { return HAND_INDEX[kind]; },
    name(kind, side) { return `${this.texts.sides[side]} ${this.texts.pieces[kind]}`; },
    hand(side) { return fill(this.texts.hand, { side: this.texts.sides[side] }); },
  },
};
