for (const timeline of document.querySelectorAll(".timeline")) {
  const [scroll, time, axis] = [".scroll", ".time", ".axis"].map(name => timeline.querySelector(name));
  const [from, to, columns] = ["from", "to", "columns"].map(name => Number(timeline.dataset[name]));
  let zoom = 1;

  function drawAxis() {
    const least = (to - from) / (time.clientWidth / 110);
    let step = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
    step *= [1, 2, 5, 10].find(factor => step * factor >= least);
    const [unit, name] = step >= 1e6 ? [1e6, "ms"] : step >= 1e3 ? [1e3, "us"] : [1, "ns"];
    axis.replaceChildren();
    for (let at = Math.ceil(from / step) * step; at < to; at += step) {
      const tick = document.createElement("span");
      tick.style.left = 100 * (at - from) / (to - from) + "%";
      tick.textContent = +(at / unit).toFixed(3) + " " + name;
      axis.append(tick);
    }
  }

  // Zooms so that what is `x` pixels from the left edge stays there.
  function zoomTo(next, x) {
    const part = (scroll.scrollLeft + x) / time.clientWidth;
    // A column takes at most eight pixels.
    zoom = Math.max(1, Math.min(next, 8 * columns / scroll.clientWidth));
    time.style.width = 100 * zoom + "%";
    scroll.scrollLeft = part * time.clientWidth - x;
    drawAxis();
  }

  scroll.addEventListener("wheel", event => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const x = event.clientX - scroll.getBoundingClientRect().left;
    zoomTo(event.deltaY < 0 ? zoom * 1.5 : zoom / 1.5, x);
  }, { passive: false });
  const [closer, farther, all] = timeline.querySelectorAll("button");
  closer.addEventListener("click", () => zoomTo(zoom * 2, scroll.clientWidth / 2));
  farther.addEventListener("click", () => zoomTo(zoom / 2, scroll.clientWidth / 2));
  all.addEventListener("click", () => zoomTo(1, 0));
  window.addEventListener("resize", drawAxis);
  drawAxis();
}
