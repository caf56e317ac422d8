// Black's expected score after each move, as a curve; a click goes to a move.
const W = 320, H = 84;
export default {
  template: `
  <svg class="kg" :viewBox="'0 0 ${W} ${H}'" preserveAspectRatio="none" role="img" :aria-label="label"
       @pointerdown="choose" @pointermove="$event.buttons && choose($event)">
    <rect width="${W}" height="${H}" class="kg-back"/>
    <path v-if="values.length" :d="area" class="kg-area"/>
    <path d="M0 ${H / 2}H${W}" class="kg-even"/>
    <path v-if="values.length" :d="line" class="kg-line"/>
    <path v-if="length" :d="'M' + x(cursor) + ' 0V${H}'" class="kg-now"/>
  </svg>`,
  props: { values: Array, cursor: Number, length: Number, label: String },
  computed: {
    points() { return this.values.map((value, ply) => `${this.x(ply).toFixed(1)} ${(H - value * H).toFixed(1)}`); },
    line() { return `M${this.points.join("L")}${this.points.length === 1 ? "h0.1" : ""}`; },
    area() { return `M0 ${H}L${this.points.join("L")}L${this.x(this.values.length - 1).toFixed(1)} ${H}Z`; },
  },
  methods: {
    x(ply) { return (ply / Math.max(this.length, 1)) * W; },
    choose(event) {
      const box = this.$el.getBoundingClientRect();
      const ply = Math.round(((event.clientX - box.left) / box.width) * this.length);
      if (ply !== this.cursor) this.$emit("choose", ply);
    },
  },
};
