// A game with its variations: the main line downwards, variations indented below the move they replace.
// Tab reaches the current move, the arrows up and down go from there to any other, Enter or Space selects it.
export default {
  template: `
  <div ref="tree" class="ka-tree" role="group" :aria-label="texts.moves" @keydown.up="focusNext($event, -1)" @keydown.down="focusNext($event, 1)">
    <button class="ka-move ka-start" :class="{ 'ka-now': current === root.id }" :aria-current="current === root.id" :tabindex="current === root.id ? 0 : -1"
            :data-node="root.id" @click="$emit('choose', root.id)">{{ texts.start }}</button>
    <span v-if="root.comment" class="ka-note">{{ root.comment }}</span>
    <div v-for="row in rows" :key="row.moves[0].id" class="ka-row" :class="{ 'ka-variation': row.depth }" :style="{ '--depth': Math.min(row.depth, 5) }">
      <span v-if="row.comment" class="ka-note">{{ row.comment }}</span>
      <template v-for="(move, index) in row.moves" :key="move.id">
        <span v-if="!row.depth || !index" class="ka-number">{{ move.ply }}</span>
        <button class="ka-move" :class="{ 'ka-now': current === move.id }" :aria-current="current === move.id" :tabindex="current === move.id ? 0 : -1"
                :data-node="move.id" @click="$emit('choose', move.id)">{{ move.text }}<b v-if="move.sign" class="ka-sign"
                :class="{ 'ka-blunder': move.sign === '??' }" :title="move.hint">{{ move.sign }}</b></button>
        <span v-if="move.comment" class="ka-note">{{ move.comment }}</span>
      </template>
    </div>
    <p v-if="!rows.length" class="ka-empty">{{ texts.none }}</p>
  </div>`,
  props: { rows: Array, root: Object, current: Number, texts: Object },
  watch: { current() { this.$nextTick(this.follow); } },
  mounted() { this.follow(); },
  methods: {
    follow() {
      const tree = this.$refs.tree, now = tree.querySelector(".ka-now");
      if (!now) return;
      if (tree.contains(document.activeElement)) now.focus({ preventScroll: true });
      this.scrollTo(now);
    },
    focusNext(event, by) {
      const moves = [...this.$refs.tree.querySelectorAll(".ka-move")];
      const next = moves[moves.indexOf(event.target) + by];
      event.preventDefault();
      if (!next) return;
      next.focus({ preventScroll: true });
      this.scrollTo(next);
    },
    scrollTo(move) { // scrollIntoView would scroll the whole page on a phone
      const tree = this.$refs.tree, top = move.offsetTop;
      if (top < tree.scrollTop) tree.scrollTop = top - 4;
      else if (top + move.offsetHeight > tree.scrollTop + tree.clientHeight) tree.scrollTop = top + move.offsetHeight - tree.clientHeight + 4;
    },
  },
};
