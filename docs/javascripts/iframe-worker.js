// A page that is opened from the disk may not start a worker, and the search runs in one. There a hidden frame stands in for
// it: the script is loaded into the frame, and messages are handed over both ways.
if (location.protocol === "file:") {
  class FrameWorker extends EventTarget {
    constructor(address) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.documentElement.append(frame)
      const inside = frame.contentWindow
      const hand = (target, data) => target.dispatchEvent(new MessageEvent("message", { data }))
      inside.postMessage = (data) => setTimeout(() => hand(this, data))
      this.loaded = new Promise((done) => {
        const script = frame.contentDocument.createElement("script")
        script.src = new URL(address, location.href)
        script.onload = done
        frame.contentDocument.body.append(script)
      })
      this.postMessage = (data) => this.loaded.then(() => hand(inside, data))
      this.terminate = () => frame.remove()
    }
  }
  window.Worker = window.IFrameWorker = FrameWorker
}
