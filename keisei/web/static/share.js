// Copies what an address of this server answers: text, or a picture. Browsers want the request to begin
// within the click. Where a page has no clipboard (http from another machine), text is copied the old way.
window.keiseiCopy = async (address, type) => {
  const answer = async () => {
    const response = await fetch(address);
    if (!response.ok) throw new Error(await response.text());
    return response;
  };
  let done = "copied";
  try {
    if (type === "image/png") {
      const item = { "image/png": answer().then((response) => response.blob()) };
      await navigator.clipboard.write([new ClipboardItem(item)]);
    } else {
      const text = await (await answer()).text();
      if (navigator.clipboard) await navigator.clipboard.writeText(text);
      else {
        const area = Object.assign(document.createElement("textarea"), { value: text });
        document.body.append(area);
        area.select();
        if (!document.execCommand("copy")) done = "failed";
        area.remove();
      }
    }
  } catch (error) {
    console.warn(error);
    done = "failed";
  }
  emitEvent("keisei-copied", done);
};
