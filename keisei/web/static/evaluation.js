// Black's expected score over a game, with a scale, marked blunders, and a tooltip; a click goes to a move.
const LEFT = 38, RIGHT = 8, TOP = 8, BOTTOM = 20, STEPS = [0, 25, 50, 75, 100];
export default {
  template: `
  <div ref="box" class="ke">
    <svg class="ke-plot" :width="width" :height="height" role="img" :aria-label="label" @pointerdown="choose" @pointermove="hover"
         @pointerleave="at = null" @pointercancel="at = null">
      <g class="ke-grid">
        <path v-for="s in steps" :d="'M${LEFT} ' + s.y + 'H' + (width - ${RIGHT})" :class="{ 'ke-even': s.value === 50 }"/>
        <path v-for="t in ticks" :d="'M' + t.x + ' ${TOP}V' + (height - ${BOTTOM})"/>
      </g>
      <g class="ke-scale">
        <text v-for="s in steps" x="${LEFT - 5}" :y="s.y + 4" text-anchor="end">{{ s.value }}%</text>
        <text v-for="t in ticks" :x="t.x" :y="height - 5" text-anchor="middle">{{ t.ply }}</text>
      </g>
      <path v-for="area in areas" :d="area" class="ke-area"/>
      <path v-for="line in lines" :d="line" class="ke-line"/>
      <path v-if="length" :d="'M' + x(cursor) + ' ${TOP}V' + (height - ${BOTTOM})" class="ke-now"/>
      <path v-if="at !== null" :d="'M' + x(at) + ' ${TOP}V' + (height - ${BOTTOM})" class="ke-at"/>
      <template v-for="m in marked">
        <circle v-if="m.sign === '??'" :cx="m.x" :cy="m.y" r="5" class="ke-blunder" :data-ply="m.ply"/>
        <circle v-else :cx="m.x" :cy="m.y" r="3.5" class="ke-mistake" :data-ply="m.ply"/>
      </template>
    </svg>
    <div v-if="tip" class="ke-tip" :style="tip.style">{{ tip.text }}</div>
  </div>`,
  props: { values: Array, signs: Object, tips: Array, cursor: Number, label: String },
  data() { return { width: 320, height: 130, at: null }; },
  computed: {
    length() { return Math.max(this.values.length - 1, 1); },
    steps() { return STEPS.map((value) => ({ value, y: this.y(value / 100) })); },
    ticks() {
      const room = Math.max(2, Math.floor((this.width - LEFT - RIGHT) / 44));
      const step = [1, 2, 5, 10, 20, 50, 100, 200].find((s) => this.length / s <= room) ?? 500;
      const ticks = [];
      for (let ply = step; ply <= this.length; ply += step) ticks.push({ ply, x: this.x(ply) });
      return ticks;
    },
    // Runs of positions whose value is known.
    runs() {
      const runs = [];
      let run = [];
      this.values.forEach((value, ply) => {
        if (value === null) { if (run.length) runs.push(run); run = []; } else run.push([ply, value]);
      });
      if (run.length) runs.push(run);
      return runs;
    },
    lines() {
      return this.runs.map((run) => `M${run.map(([ply, value]) => `${this.x(ply).toFixed(1)} ${this.y(value).toFixed(1)}`).join("L")}${run.length === 1 ? "h.1" : ""}`);
    },
    areas() {
      return this.runs.map((run) => {
        const from = this.x(run[0][0]).toFixed(1), to = this.x(run[run.length - 1][0]).toFixed(1), even = this.y(0.5).toFixed(1);
        return `M${from} ${even}L${run.map(([ply, value]) => `${this.x(ply).toFixed(1)} ${this.y(value).toFixed(1)}`).join("L")}L${to} ${even}Z`;
      });
    },
    marked() {
      return Object.entries(this.signs).filter(([ply]) => this.values[ply] != null)
        .map(([ply, sign]) => ({ ply, sign, x: this.x(Number(ply)), y: this.y(this.values[ply]) }));
    },
    tip() {
      if (this.at === null || !this.tips[this.at]) return null;
      const x = this.x(this.at), right = x > this.width / 2;
      return { text: this.tips[this.at], style: right ? { right: `${this.width - x + 6}px` } : { left: `${x + 6}px` } };
    },
  },
  mounted() {
    this.observer = new ResizeObserver(() => { this.width = Math.max(160, this.$refs.box.clientWidth); });
    this.observer.observe(this.$refs.box);
  },
  unmounted() { this.observer.disconnect(); },
  methods: {
    x(ply) { return LEFT + (ply / this.length) * (this.width - LEFT - RIGHT); },
    y(value) { return TOP + (1 - value) * (this.height - TOP - BOTTOM); },
    plyAt(event) {
      const box = this.$refs.box.getBoundingClientRect();
      const share = (event.clientX - box.left - LEFT) / (this.width - LEFT - RIGHT);
      return Math.max(0, Math.min(this.values.length - 1, Math.round(share * this.length)));
    },
    hover(event) {
      this.at = this.plyAt(event);
      if (event.buttons) this.choose(event);
    },
    choose(event) {
      const ply = this.plyAt(event);
      this.at = ply;
      if (ply !== this.cursor) this.$emit("choose", ply);
    },
  },
};
