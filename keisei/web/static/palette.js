// The pieces that can be put on the board, and the tools that move and remove pieces.
const KINDS = ["K", "R", "B", "G", "S", "N", "L", "P", "+R", "+B", "+S", "+N", "+L", "+P"];
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
  </div>`,
  props: { tool: String, lettering: String, texts: Object },
  data() { return { kinds: KINDS }; },
  methods: {
    own(kind, side) { return side ? kind.toLowerCase() : kind; },
    name(kind, side) { return `${this.texts.sides[side]} ${this.texts.pieces[kind]}`; },
  },
};
