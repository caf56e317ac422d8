// The list of moves, two per row; the current one is highlighted and kept in view.
export default {
  template: `
  <div ref="list" class="km" role="group" :aria-label="texts.moves" tabindex="0">
    <template v-for="cell in cells" :key="cell.ply">
      <span v-if="cell.number" class="km-number">{{ cell.number }}</span>
      <button v-if="cell.text" class="km-move" :class="{ 'km-now': cell.ply === cursor }" tabindex="-1"
              :aria-current="cell.ply === cursor" :data-ply="cell.ply" @click="$emit('choose', cell.ply)">{{ cell.text }}</button>
      <span v-else class="km-move">…</span>
    </template>
    <div v-if="end" class="km-end">{{ end }}</div>
    <div v-if="!moves.length && !end" class="km-empty">{{ texts.none }}</div>
  </div>`,
  props: { moves: Array, cursor: Number, first: Number, end: String, texts: Object },
  computed: {
    cells() {
      // `first` is 1 in handicap games, where White moves first.
      const cells = this.first && this.moves.length ? [{ ply: -1, number: 1, text: "" }] : [];
      this.moves.forEach((text, index) => {
        const place = index + this.first;
        cells.push({ ply: index + 1, text, number: place % 2 === 0 ? place / 2 + 1 : 0 });
      });
      return cells;
    },
  },
  watch: { cursor() { this.$nextTick(this.follow); }, moves() { this.$nextTick(this.follow); } },
  mounted() { this.follow(); },
  methods: {
    follow() { // scrollIntoView would scroll the whole page on a phone
      const list = this.$refs.list, now = list.querySelector(".km-now");
      if (!now) { list.scrollTop = 0; return; }
      const top = now.offsetTop; // relative to the list, which is positioned
      if (top < list.scrollTop) list.scrollTop = top - 4;
      else if (top + now.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + now.offsetHeight - list.clientHeight + 4;
    },
  },
};
