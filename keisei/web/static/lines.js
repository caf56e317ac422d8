// The lines of a search, best first: score, share of the simulations, moves. A line can be played or kept.
export default {
  template: `
  <ol class="kl" :aria-label="texts.lines">
    <li v-for="(line, index) in lines" :key="index" class="kl-line">
      <button class="kl-play" :aria-label="texts.play + ' ' + line.first" :title="texts.play" @click="$emit('play', index)">
        <span class="kl-score" :class="line.side">{{ line.score }}</span><span class="kl-share">{{ line.share }}</span>
      </button>
      <span class="kl-moves"><b>{{ line.first }}</b><template v-for="move in line.rest"> <span>{{ move }}</span></template></span>
      <button class="kl-keep" :aria-label="texts.keep + ' ' + line.first" :title="texts.keep" @click="$emit('keep', index)">+</button>
    </li>
  </ol>`,
  props: { lines: Array, texts: Object },
};
