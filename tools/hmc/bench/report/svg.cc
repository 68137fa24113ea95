#include "bench/report/svg.h"

#include <fmt/core.h>

namespace hmc::bench {

namespace {

constexpr double kMarkerSize = 3.4;

// The length of the UTF-8 character that begins here; 0 when none does.
size_t characterAt(const std::string& text, size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  size_t length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : first >= 0xC2 ? 2 : 0;
  if (length == 0 || first > 0xF4 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((text[at + i] & 0xC0) != 0x80) return 0;
  }
  return length;
}

std::string attributes(const Stroke& stroke) {
  std::string out = fmt::format("stroke=\"{}\" stroke-width=\"{}\"", stroke.colour, stroke.width);
  if (!stroke.dashes.empty()) out += fmt::format(" stroke-dasharray=\"{}\"", stroke.dashes);
  return out;
}

const char* anchorName(Anchor anchor) {
  if (anchor == Anchor::start) return "start";
  return anchor == Anchor::middle ? "middle" : "end";
}

std::string polygon(Point at, const std::vector<Point>& corners) {
  std::string points;
  for (const auto& corner : corners) {
    points +=
        fmt::format("{}{:.2f},{:.2f}", points.empty() ? "" : " ", at.x + corner.x, at.y + corner.y);
  }
  return fmt::format("<polygon points=\"{}\"", points);
}

std::string outline(Marker shape, Point at) {
  const double r = kMarkerSize;
  switch (shape) {
    case Marker::circle:
      return fmt::format("<circle cx=\"{:.2f}\" cy=\"{:.2f}\" r=\"{}\"", at.x, at.y, r);
    case Marker::square:
      return polygon(at, {{-r, -r}, {r, -r}, {r, r}, {-r, r}});
    case Marker::triangle:
      return polygon(at, {{0, -1.25 * r}, {1.15 * r, 0.9 * r}, {-1.15 * r, 0.9 * r}});
    case Marker::diamond:
      return polygon(at, {{0, -1.35 * r}, {1.35 * r, 0}, {0, 1.35 * r}, {-1.35 * r, 0}});
    case Marker::plus:
      break;
  }
  const double t = r / 2.5;
  return polygon(at, {{-t, -1.3 * r},
                      {t, -1.3 * r},
                      {t, -t},
                      {1.3 * r, -t},
                      {1.3 * r, t},
                      {t, t},
                      {t, 1.3 * r},
                      {-t, 1.3 * r},
                      {-t, t},
                      {-1.3 * r, t},
                      {-1.3 * r, -t},
                      {-t, -t}});
}

}  // namespace

std::string xmlText(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const size_t length = characterAt(text, at);
    const char c = text[at];
    if (length == 0 || static_cast<unsigned char>(c) < 0x20) {
      out += '?';
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else {
      out += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return out;
}

Svg::Svg(double width, double height, const std::string& title) {
  out_ = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\" font-family=\"Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', "
      "sans-serif\">\n<title>{2}</title>\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
      width, height, xmlText(title));
}

void Svg::line(Point from, Point to, const Stroke& stroke) {
  out_ += fmt::format("<line x1=\"{:.2f}\" y1=\"{:.2f}\" x2=\"{:.2f}\" y2=\"{:.2f}\" {}/>\n",
                      from.x, from.y, to.x, to.y, attributes(stroke));
}

void Svg::path(const std::vector<Point>& points, const Stroke& stroke) {
  std::string places;
  for (const auto& point : points) {
    places += fmt::format("{}{:.2f},{:.2f}", places.empty() ? "" : " ", point.x, point.y);
  }
  out_ += fmt::format(
      "<polyline points=\"{}\" fill=\"none\" stroke-linejoin=\"round\" stroke-linecap=\"round\" "
      "{}/>\n",
      places, attributes(stroke));
}

void Svg::text(Point at, const std::string& text, const Font& font) {
  const std::string turn =
      font.upwards ? fmt::format(" transform=\"rotate(-90 {:.2f} {:.2f})\"", at.x, at.y) : "";
  out_ += fmt::format(
      "<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"{}\"{} fill=\"{}\" "
      "text-anchor=\"{}\"{}>{}</text>\n",
      at.x, at.y, font.size, font.bold ? " font-weight=\"bold\"" : "", font.colour,
      anchorName(font.anchor), turn, xmlText(text));
}

void Svg::marker(Marker shape, Point at, const std::string& colour, bool hollow) {
  out_ += fmt::format("{} fill=\"{}\" stroke=\"{}\" stroke-width=\"1.3\"/>\n", outline(shape, at),
                      hollow ? "#ffffff" : colour, colour);
}

std::string Svg::finish() && {
  return std::move(out_) + "</svg>\n";
}

}  // namespace hmc::bench
